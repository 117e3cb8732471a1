// Bounds and places of a user's JSON, and managed values over it: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include "support/failure.hpp"

#include <chrono>
#include <doctest/doctest.h>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;
using nlohmann::json;

namespace json_merge_test {

namespace {

// `levels` containers, the top object among them, with a number in the innermost.
std::string nested(std::size_t levels)
{
    return "{\"a\":" + std::string(levels - 1, '[') + "1" + std::string(levels - 1, ']') + "}";
}

} // namespace

TEST_CASE("an object is parsed as it stands")
{
    for (const std::string text :
         {"{}", " \n\t{ } \n", R"({"a": [1, -2500, "x", true, null, {"b": {}}]})", R"({"\u00e9\n": "\ud83d\ude00"})"})
        CHECK(parse_json_object(text, "s") == json::parse(text));
}

TEST_CASE("half of a surrogate pair, which node reads, becomes U+FFFD, and nothing beside it changes")
{
    const std::pair<const char *, const char *> rows[] = {
        {R"({"a": "\ud800"})", R"({"a": "\ufffd"})"},
        {R"({"a": "\udc00\ud83d\ude00\ud83dx"})", R"({"a": "\ufffd\ud83d\ude00\ufffdx"})"},
        {R"({"\ud800\ud800": "\\ud800"})", R"({"\ufffd\ufffd": "\\ud800"})"}, // a backslash, and letters
        {R"({"a": "\ud83d\\ude00"})", R"({"a": "\ufffd\\ude00"})"},
    };
    for (const auto &row : rows)
        CHECK_MESSAGE(parse_json_object(row.first, "s") == json::parse(row.second), row.first);
    for (const std::string text : {"{\"a\": \"\\ud800", "{\"a\": \"\\ud80", "{\"a\": \"\\"})
        CHECK_MESSAGE(failure_of([&] { return parse_json_object(text, "s"); }).status == 78, text);
}

TEST_CASE("what is no JSON is refused with file, line and column")
{
    struct Row {
        std::string text;
        std::string place;
    };
    const std::vector<Row> rows = {
        {"", "s.json:1:1: "},
        {"{", "s.json:1:2: "},
        {"{\"a\": 1,}", "s.json:1:9: "},
        {"{\n  \"a\": 1,\n}", "s.json:3:1: "},
        {"{\n\"a\": 1\n\"b\": 2}", "s.json:3:3: "},
        {"{}x", "s.json:1:3: "},
        {"{}\n\n{}", "s.json:3:1: "},
        {"\n\n   !", "s.json:3:4: "},
        {"{'a': 1}", "s.json:1:2: "},
        {"{a: 1}", "s.json:1:2: "},
        {"{\"a\": NaN}", "s.json:1:7: "},
        {"{\"a\": 010}", "s.json:1:"},
        {"{} // comment", "s.json:1:4: "},
        {"{\"a\": \"\xff\"}", "s.json:1:8: "},
        {std::string("{\"a\": \"\0\"}", 10), "s.json:1:8: "},
        {std::string("{}\0", 3), "s.json:1:3: "},
        {std::string("{}\n\0{}", 6), "s.json:2:1: "},
        {"{\"a\": \"x\ny\"}", "s.json:1:9: "},
        {"{\"a\": 1e400,\n\"b\": 1e400 x}", "s.json:2:12: "},
        {"{\"a\": 1,\n\"b\": 29E2929E29}", "s.json:2:12: "}, // not even a number, and too large as far as it is one
    };
    for (const auto &row : rows) {
        CAPTURE(row.text);
        const Caught caught = failure_of([&] { return parse_json_object(row.text, "s.json"); });
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, row.place), caught.text);
    }
}

TEST_CASE("numbers pass byte for byte, whatever their size and form")
{
    for (const std::string number :
         {"0", "-1", "123456789012345678", "9007199254740993", "18446744073709551616", "-123456789012345678901234567890", "-0", "-0.0",
          "1.0", "1.50", "1e5", "1E+400", "-1e999", "0.1000000000000000000001"}) {
        const std::string text = R"({"a":)" + number + R"(,"b":[)" + number + R"(,"x\\\"1e5",)" + number + "]}";
        CHECK(dump_with_numbers(parse_json_object(text, "s.json")) == text);
    }
    const std::string texts = R"({"-0":"-0","1e5":"1.0 \" 1e5 \\"})";
    CHECK(dump_with_numbers(parse_json_object(texts, "s.json")) == texts);
    CHECK_FALSE(failure_of([] { return parse_json_object("{\"a\": 1.}", "s.json"); }).text.empty());
}

TEST_CASE("one number in two ways of writing it is no change")
{
    const auto value = [](const std::string &text) { return parse_json_object("{\"a\": " + text + "}", "s.json").at("a"); };
    CHECK(are_same_values(value("1e2"), value("100")));
    CHECK(are_same_values(value("12345678901234567890"), value("12345678901234567000")));
    CHECK_FALSE(are_same_values(value("12345678901234567890"), value("12345678901234600000")));
    CHECK_FALSE(are_same_values(value("1.5"), value("\"1.5\"")));
}

TEST_CASE("with comments and trailing commas, where they are allowed")
{
    struct Row {
        std::string text, value;
    };
    const std::vector<Row> rows = {
        {"{}// end", "{}"},
        {"// first\n{}\n// last\n", "{}"},
        {"/* a */{/* b\n * c */}/**/", "{}"},
        {"{\"a\": 1, // one\n \"b\": 2 /* two */ }", R"({"a":1,"b":2})"},
        {"{\"a\": [1, 2,], \"b\": {\"c\": 3, /* x */ // y\n },\r\n\t}", R"({"a":[1,2],"b":{"c":3}})"},
        {R"({"u": "http://x/*y*/", "c": "// no", "t": ",]", "q": "\\", "r": "\"//"})",
         R"({"u": "http://x/*y*/", "c": "// no", "t": ",]", "q": "\\", "r": "\"//"})"},
        {R"({"a": ",}" , })", R"({"a": ",}"})"},
        {"{\"a\": \"\u00e4\"} // \u00e4\u20ac \" ' { [ ,", "{\"a\": \"\u00e4\"}"},
        {"{\"a\": 1 /* \" */}", R"({"a": 1})"},
        {"{\"a\": 1 /* // */}", R"({"a": 1})"},
        {"{\"a\": 1 // /*\n}", R"({"a": 1})"},
        {"{\"a\": [[],[{},],],}", R"({"a": [[],[{}]]})"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.text);
        CHECK(parse_json_object(row.text, "m", JsonSyntax::with_comments) == json::parse(row.value));
    }
    for (const std::string text : {"{} // x", "{\"a\": 1,}", "/**/{}"})
        CHECK(failure_of([&] { return parse_json_object(text, "m", JsonSyntax::strict); }).status == 78);
}

TEST_CASE("comments shift no place in a message, and a comment without end is told where it begins")
{
    struct Row {
        std::string text, place;
    };
    const std::vector<Row> rows = {
        {"// one\n/* two\n three */ {\n\"a\": 1, // x\n\"b\": oops}", "m:5:6: "},
        {"/* \u00e4 */ {\"a\" 1}", "m:1:15: "},
        {"{\"a\": 1,, }", "m:1:11: "},
        {"{ /* no end", "m:1:3: "},
        {"{ /*/", "m:1:3: "},
        {"{}\n\n/", "m:3:1: "},
        {"{ / }", "m:1:3: "},
        {"{\"a", "m:1:4: "},
        {"{\"a\\", "m:1:5: "},
        {"// only a comment", "m:1:"},
        {"", "m:1:1: "},
    };
    for (const auto &row : rows) {
        CAPTURE(row.text);
        const Caught caught = failure_of([&] { return parse_json_object(row.text, "m", JsonSyntax::with_comments); });
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, row.place), caught.text);
    }
}

TEST_CASE("a refusal repeats nothing of the content")
{
    const Caught caught = failure_of([] { return parse_json_object("{\"key\": \"secret\x1b[31m\" oops}", "s.json"); });
    CHECK(caught.status == 78);
    CHECK_FALSE(has(caught.text, "secret"));
    CHECK_FALSE(has(caught.text, "oops"));
    CHECK_FALSE(has(caught.text, "\x1b"));
}

TEST_CASE("the top level must be an object")
{
    for (const std::string text : {"[]", "null", "1", "\"x\"", "true", "[{}]"}) {
        const Caught caught = failure_of([&] { return parse_json_object(text, "s.json"); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "s.json:1:1: the top level must be an object"));
    }
}

TEST_CASE("nesting is bounded at 128 levels, long before anything recurses too deep")
{
    CHECK_NOTHROW(parse_json_object(nested(128), "s.json"));
    for (const std::size_t levels : {129U, 130U, 1000U, 1'000'000U}) {
        CAPTURE(levels);
        const Caught caught = failure_of([&] { return parse_json_object(nested(levels), "s.json"); });
        CHECK(caught.status == 78);
        CHECK(caught.text == "s.json: it is nested deeper than 128 levels");
    }
    std::string objects;
    for (int level = 0; level < 100'000; ++level)
        objects += "{\"a\":";
    CHECK(has(failure_of([&] { return parse_json_object(objects, "s.json"); }).text, "nested deeper"));
}

TEST_CASE("a list of many objects costs what its length costs")
{
    std::string text = "{\"a\":[{}";
    for (int count = 0; count < 200'000; ++count)
        text += ",{}";
    const auto start = std::chrono::steady_clock::now();
    CHECK(parse_json_object(text + "]}", "s.json")["a"].size() == 200'001);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10)); // more than a minute where each looks at all before it
}

TEST_CASE("managed values win; objects merge, everything else is replaced")
{
    struct Row {
        std::string host, managed, merged;
    };
    const std::vector<Row> rows = {
        {"{}", "{}", "{}"},
        {R"({"a":1})", "{}", R"({"a":1})"},
        {"{}", R"({"a":1})", R"({"a":1})"},
        {R"({"a":1})", R"({"a":2})", R"({"a":2})"},
        {R"({"a":1,"b":2})", R"({"b":3,"c":4})", R"({"a":1,"b":3,"c":4})"},
        {R"({"a":{"x":1,"y":2}})", R"({"a":{"y":3,"z":4}})", R"({"a":{"x":1,"y":3,"z":4}})"},
        {R"({"a":{"b":{"c":{"d":1,"e":2}}}})", R"({"a":{"b":{"c":{"d":9}}}})", R"({"a":{"b":{"c":{"d":9,"e":2}}}})"},
        {R"({"a":[1,2,3]})", R"({"a":[4]})", R"({"a":[4]})"},
        {R"({"a":[1]})", R"({"a":[]})", R"({"a":[]})"},
        {R"({"a":{"x":1}})", R"({"a":[4]})", R"({"a":[4]})"},
        {R"({"a":[1]})", R"({"a":{"x":1}})", R"({"a":{"x":1}})"},
        {R"({"a":{"x":1}})", R"({"a":null})", R"({"a":null})"},
        {R"({"a":null})", R"({"a":{"x":1}})", R"({"a":{"x":1}})"},
        {R"({"a":{"x":1}})", R"({"a":{}})", R"({"a":{"x":1}})"},
        {R"({"a":1})", R"({"a":{}})", R"({"a":{}})"},
        {R"({"":1,"A":1})", R"({"":2,"a":3})", R"({"":2,"A":1,"a":3})"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.host);
        CAPTURE(row.managed);
        CHECK(merge_managed(json::parse(row.host), json::parse(row.managed)) == json::parse(row.merged));
    }
}

} // namespace json_merge_test

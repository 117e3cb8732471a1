// common/policy/yaml/yaml_tree.hpp
#include "common/policy/yaml/yaml_tree.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace yaml_tree_test {

namespace {

std::string problems_of(const std::string &text)
{
    Problems problems;
    static_cast<void>(parse_yaml("p.yaml", text, problems));
    try {
        problems.throw_if_any();
    } catch (const PolicyError &error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

YamlNode parse(const std::string &text)
{
    Problems problems;
    auto tree = parse_yaml("p.yaml", text, problems);
    REQUIRE(tree);
    REQUIRE(problems.empty());
    return std::move(*tree);
}

ScalarMeaning meaning_of(const std::string &plain)
{
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = plain;
    return meaning_of_scalar(node);
}

} // namespace

TEST_CASE("keeps the order, kind and place of everything")
{
    const auto root = parse("a: 1\nb:\n  - x\n  - 'y'\nc:\n");
    REQUIRE(root.entries.size() == 3);
    CHECK(root.entries[0].key == "a");
    CHECK(to_string(root.entries[0].value.where) == "p.yaml:1:4");
    const auto &list = root.entries[1].value;
    REQUIRE(list.items.size() == 2);
    CHECK(to_string(list.items[1].where) == "p.yaml:4:5");
    CHECK_FALSE(list.items[0].quoted);
    CHECK(list.items[1].quoted);
    CHECK(root.entries[2].value.kind == YamlNode::Kind::null);
}

TEST_CASE("reports a key given twice with both places and its full name")
{
    CHECK(problems_of("a: {b: 1, c: 2, b: 3}\n") == "p.yaml:1:17: a.b: given twice, first at p.yaml:1:5; keep one of them");
    CHECK(contains(problems_of("a: 1\n\"a\": 2\n"), "p.yaml:2:1: a: given twice, first at p.yaml:1:1"));
}

TEST_CASE("refuses anchors and aliases, also where they would explode")
{
    CHECK(contains(problems_of("a: &x 1\n"), "p.yaml:1:4: anchors and aliases"));
    CHECK(contains(problems_of("a: *x\n"), "p.yaml:1:"));
    CHECK(contains(problems_of("a: &a [1]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n"), "anchors and aliases"));
    CHECK(contains(problems_of("<<: {a: 1}\n"), "merge keys"));
}

TEST_CASE("refuses depth beyond the limit without using the stack for it")
{
    const auto nested = [](std::size_t depth) { return "a: " + std::string(depth, '[') + std::string(depth, ']') + "\n"; };
    CHECK(problems_of(nested(yaml_depth_limit - 1)).empty());
    CHECK(contains(problems_of(nested(yaml_depth_limit)), "nested more than 64 deep"));
    CHECK(contains(problems_of(nested(100000)), "nested more than 64 deep"));
    CHECK(contains(problems_of(std::string(100000, '{')), "nested more than 64 deep"));
    std::string block;
    for (std::size_t depth = 0; depth < 1000; ++depth)
        block += std::string(depth, ' ') + "a:\n";
    CHECK(contains(problems_of(block), "nested more than 64 deep"));
    std::string dashes;
    for (int depth = 0; depth < 100000; ++depth)
        dashes += "- ";
    CHECK(contains(problems_of(dashes), "nested more than 64 deep"));
}

TEST_CASE("refuses bytes that no policy holds")
{
    CHECK(contains(problems_of(std::string("a: \0b\n", 6)), "p.yaml:1:4: the control character \\x00"));
    CHECK(contains(problems_of("a: \x1b[2J\n"), "control character \\x1b"));
    CHECK(contains(problems_of("a: 1\nb: \xff\n"), "p.yaml:2:4: not UTF-8"));
    CHECK(contains(problems_of("\xff\xfe\x61"), "not UTF-8"));
    CHECK(contains(problems_of(std::string(yaml_size_limit + 1, ' ')), "larger than 1048576 bytes"));
    CHECK(problems_of(std::string(yaml_size_limit, ' ')).empty());
}

TEST_CASE("says that a tab is a tab")
{
    CHECK(contains(problems_of("a:\n\tb: 1\n"), "p.yaml:2:1: a tab in the indentation; indent with spaces"));
    CHECK(contains(problems_of("a:\n  \tb: 1\n"), "p.yaml:2:3: a tab in the indentation"));
    CHECK(problems_of("a:\t1\n").empty());
}

TEST_CASE("refuses a second document, and text after the first")
{
    CHECK(contains(problems_of("a: 1\n---\nb: 2\n"), "more text after the end of the document"));
    CHECK(contains(problems_of("{a: 1} b\n"), "more text after the end of the document"));
    CHECK(contains(problems_of("a: 1\n]\n"), "p.yaml:2:1: ']' without the bracket that it would close"));
    CHECK(problems_of("---\na: 1\n...\n").empty());
}

TEST_CASE("does not take the end of the file for the end of a quote or bracket")
{
    CHECK(contains(problems_of("a: \"b\nc: d\n"), "p.yaml:1:4: a quote that is never closed"));
    CHECK(contains(problems_of("a: 'b"), "p.yaml:1:4: a quote that is never closed"));
    CHECK(contains(problems_of("a: [b\n"), "p.yaml:1:6: ',' or ']' expected, in the list that begins at p.yaml:1:4, found the end"));
    CHECK(parse("a: |\n  b").entries[0].value.text == "b\n");
}

TEST_CASE("refuses tags, directives and keys that are no text")
{
    CHECK(contains(problems_of("a: !!str yes\n"), "the tag 'tag:yaml.org,2002:str' is not accepted"));
    CHECK(contains(problems_of("a: !x [1]\n"), "the tag '!x' is not accepted"));
    CHECK(contains(problems_of("%YAML 1.1\n---\na: yes\n"), "begins with '%'"));
    CHECK(contains(problems_of("%devs: 1\n"), "put the name of a group in quotes"));
    CHECK(contains(problems_of("? [a]\n: b\n"), "a key must be text, found a list"));
    CHECK(contains(problems_of("1: b\n"), "a key must be text, found the number 1"));
    CHECK(contains(problems_of("~: b\n"), "a key must be text, found nothing"));
}

TEST_CASE("a scalar means what JSON would write, or is text, or is refused as odd")
{
    for (const auto *text : {"yes", "no", "on", "off", "y",  "0x",  "0o8",  "1_000", "1:30", "1.2.3",
                             "-",   "+",  ".",  "e5",  "1e", "--1", "tRue", ".in",   "1 2",  "0b1"}) {
        CHECK_MESSAGE(meaning_of(text) == ScalarMeaning::text, text);
    }
    for (const auto *text : {"010", "00", "-012", "0x1F", "0o17", "+1", ".5", "5.", "+.5", ".inf", "-.Inf", ".NaN", "True", "FALSE", "Null",
                             "~", "1.e5", "01.5"}) {
        CHECK_MESSAGE(meaning_of(text) == ScalarMeaning::odd, text);
    }
    for (const auto *text : {"0", "1", "-5", "123456789012345678901234567890"})
        CHECK_MESSAGE(meaning_of(text) == ScalarMeaning::integer, text);
    for (const auto *text : {"1.5", "-0.5", "1e5", "1E+5", "1.25e-3"})
        CHECK_MESSAGE(meaning_of(text) == ScalarMeaning::real, text);
    for (const auto *text : {"true", "false"})
        CHECK_MESSAGE(meaning_of(text) == ScalarMeaning::boolean, text);
    for (const auto *text : {"", "null"})
        CHECK_MESSAGE(meaning_of(text) == ScalarMeaning::null, text);
}

TEST_CASE("quotes make anything text")
{
    const auto root = parse("a: \"true\"\nb: '010'\nc: |\n  5\nd: \"null\"\ne: ''\n");
    for (const auto &entry : root.entries)
        CHECK(meaning_of_scalar(entry.value) == ScalarMeaning::text);
}

TEST_CASE("columns count characters, and not the mark at the begin of a file")
{
    const auto root = parse("\xef\xbb\xbfä: ö\n'€': {𝄞: x}\r\nz: 1\n");
    CHECK(to_string(root.entries[0].where) == "p.yaml:1:1");
    CHECK(to_string(root.entries[0].value.where) == "p.yaml:1:4");
    CHECK(to_string(root.entries[1].value.entries[0].value.where) == "p.yaml:2:10");
    CHECK(to_string(root.entries[2].where) == "p.yaml:3:1");
    CHECK(contains(problems_of("ä: \x01"), "p.yaml:1:4: the control character \\x01"));
    CHECK(contains(problems_of("a: 1\rb: 2\n"), "p.yaml:1:5: the control character \\x0d"));
}

} // namespace yaml_tree_test

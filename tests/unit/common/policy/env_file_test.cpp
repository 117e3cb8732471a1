// Files of environment variables: common/policy/policy_sections.hpp
#include "common/policy/policy_sections.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace env_file_test {

namespace {

std::string values(std::string_view text)
{
    std::string list;
    for (const auto &assignment : parse_env_file(text, "f"))
        list += assignment.name + "=[" + assignment.value + "]";
    return list;
}

} // namespace

TEST_CASE("assignments are read as systemd reads them")
{
    struct Row {
        std::string_view text;
        std::string values;
    };
    const std::vector<Row> rows = {
        {"", ""},
        {"A=1", "A=[1]"},
        {"A=1\nB=2\n", "A=[1]B=[2]"},
        {"A=1\r\nB=2\r\n", "A=[1]B=[2]"},
        {"A=", "A=[]"},
        {"  A = x y  \n", "A=[x y]"},
        {"# c\n; c\nA=1\n", "A=[1]"},
        {"# never goes on \\\nA=1\nB=2\n", "A=[1]B=[2]"},
        {"A=x # no comment\n", "A=[x # no comment]"},
        {"A='one two' \n", "A=[one two]"},
        {"A=\"one\ntwo\"\n", "A=[one\ntwo]"},
        {"A='a\\b'\n", "A=[a\\b]"},
        {R"(A="q\"b\\d\$e\`n\n")", "A=[q\"b\\d$e`n\\n]"},
        {"A=\"one\\\ntwo\"\n", "A=[onetwo]"},
        {"A=one\\\ntwo\n", "A=[onetwo]"},
        {"A=a\\ \n", "A=[a ]"},
        {"A=it's\n", "A=[it's]"},
        {"A='a' 'b'\"c\" d\n", "A=[abcd]"},
        {"A=1\nA=2\n", "A=[1]A=[2]"},
        {"A=b=c\n", "A=[b=c]"},
        {"A=$HOME\n", "A=[$HOME]"},
        {"A=\xc3\xa4\n", "A=[\xc3\xa4]"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.text);
        CHECK(values(row.text) == row.values);
    }
}

TEST_CASE("an assignment says where it begins")
{
    const auto found = parse_env_file("# one\n\nA=\"x\ny\"\nB=2", "/etc/env");
    REQUIRE(found.size() == 2);
    CHECK(found[0].where == "/etc/env:3");
    CHECK(found[1].where == "/etc/env:5");
}

TEST_CASE("what systemd would drop is an error with file and line, and never the value")
{
    struct Row {
        std::string text;
        std::string problem;
    };
    const std::vector<Row> rows = {
        {"A=1\nsecret\n", "f:2: this line has no '='"},
        {"A=1\n\nexport B=secret\n", "f:3: the text before '=' is not the name of a variable; write NAME=value, without 'export'"},
        {"1A=secret", "f:1: the text before '=' is not the name"},
        {"=secret", "f:1: the text before '=' is not the name"},
        {"A-B=secret", "f:1: the text before '=' is not the name"},
        {"A='secret", "f:1: the quote ' is not closed"},
        {"B=1\nA=\"secret\n\n", "f:2: the quote \" is not closed"},
        {"A=\"secret\\", "f:1: the quote \" is not closed"},
        {"A=secret\xff", "f:1: the value of A is not UTF-8"},
        {"A=secret\x1b", "f:1: the value of A holds a control character"},
        {std::string("A=sec\0ret", 9), "f: holds a NUL byte"},
        {"A=" + std::string(std::size_t{128} << 10U, 's'), "f:1: the value of A is longer than a program can be given"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.problem);
        const Caught caught = failure_of([&] { return parse_env_file(row.text, "f"); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, row.problem));
        CHECK_FALSE(has(caught.text, "sec"));
    }
}

TEST_CASE("a value of the largest size that a program can be given is taken")
{
    const std::string value((std::size_t{128} << 10U) - 3, 'x');
    CHECK(values("A=" + value) == "A=[" + value + "]");
}

} // namespace env_file_test

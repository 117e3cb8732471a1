// Lines of a policy with a caret: admin/text/terminal.hpp
#include "admin/text/terminal.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace excerpt_test {

namespace {

// The column under which the caret stands, from 0, and what is above it.
std::string above_caret(const std::string &shown)
{
    const auto line = shown.substr(8, shown.find('\n') - 8);
    const auto caret = shown.substr(shown.find('\n') + 1);
    return line.substr(caret.find('^') - 8);
}

} // namespace

TEST_CASE("shows the line and a caret under the column")
{
    CHECK(excerpt("a: 1\nb: [x]\n", {"p", 2, 4}) == "    2 | b: [x]\n      |    ^\n");
    CHECK(excerpt("a: 1\r\nb: 2\r\n", {"p", 1, 4}) == "    1 | a: 1\n      |    ^\n");
    CHECK(excerpt("\xef\xbb\xbf"
                  "a: 1",
                  {"p", 1, 1}) == "    1 | a: 1\n      | ^\n");
    CHECK(excerpt("a: 1\n", {"p", 1, 99}) == "    1 | a: 1\n      |     ^\n");
}

TEST_CASE("shows nothing of a line that is not there")
{
    CHECK(excerpt("a: 1", {"p", 0, 0}).empty());
    CHECK(excerpt("a: 1", {"p", 2, 1}).empty());
    CHECK(excerpt("", {"p", 1, 1}) == "    1 | \n      | ^\n");
}

TEST_CASE("counts columns as a terminal does")
{
    CHECK(above_caret(excerpt("a\t: x", {"p", 1, 3})) == ": x");
    CHECK(excerpt("äö: x", {"p", 1, 3}) == "    1 | äö: x\n      |   ^\n");
    CHECK(excerpt("日本: x", {"p", 1, 3}) == "    1 | 日本: x\n      |     ^\n");
    CHECK(excerpt("e\xcc\x81: x", {"p", 1, 3}) == "    1 | e\xcc\x81: x\n      |  ^\n"); // an accent of its own takes no column
}

TEST_CASE("escapes what could deceive, and keeps the caret in its place")
{
    CHECK(above_caret(excerpt("a\x1b[31m: x", {"p", 1, 7})) == ": x");
    CHECK(above_caret(excerpt("\xff\xfe: x", {"p", 1, 3})) == ": x");
    const auto shown = excerpt("a\x1b[2Jb\xe2\x80\xae\x07", {"p", 1, 1});
    CHECK(shown == "    1 | a\\x1b[2Jb\\u{202e}\\x07\n      | ^\n");
    CHECK(excerpt("'\\d'", {"p", 1, 1}) == "    1 | '\\d'\n      | ^\n");
}

TEST_CASE("cuts a long line around the caret")
{
    const auto line = std::string(1000, 'a') + "X" + std::string(1000, 'b');
    const auto shown = excerpt(line, {"p", 1, 1001});
    CHECK(shown.size() < 250);
    CHECK(above_caret(shown).substr(0, 3) == "Xbb");
    CHECK(shown.find("| ...aaa") != std::string::npos);
    CHECK(shown.find("bbb...\n") != std::string::npos);
    CHECK(excerpt(std::string(std::size_t{1} << 20U, 'x'), {"p", 1, 1 << 20}).size() < 250);
}

} // namespace excerpt_test

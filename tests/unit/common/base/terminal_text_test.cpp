// Text for people on a terminal: common/base/terminal_text.hpp
#include "common/base/terminal_text.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace pi_agent;

namespace terminal_text_test {

namespace {

std::string in_columns(std::size_t columns, const std::string &text)
{
    return fitted(text, {columns, false});
}

std::string in_colours(const std::string &text)
{
    return fitted(text, {200, true});
}

} // namespace

TEST_CASE("a line that fits stays as it is")
{
    for (const char *text : {"", "\n", "a line\n", "no end", "  a   b  c\n\n", "trailing  \n"})
        CHECK(in_columns(30, text) == text);
}

TEST_CASE("a long line is divided between words, and no word is lost")
{
    CHECK(in_columns(10, "one two three four\n") == "one two\nthree four\n");
    CHECK(in_columns(10, "one two three four") == "one two\nthree four");
    CHECK(in_columns(10, "a /very/long/path/of/a/file b\n") == "a\n/very/long/path/of/a/file\nb\n");
}

TEST_CASE("its other lines stand below its text")
{
    CHECK(in_columns(20, "pi: denied: this and that is not\n") == "pi: denied: this and\n  that is not\n");
    CHECK(in_columns(20, as_failure("pi:", TextTerminal{20, true}) + " this and that is not\n") ==
          "\033[1;31mpi:\033[0m this and that is\n  not\n");
    CHECK(in_columns(20, "  rule:  the policy said so long\n") == "  rule:  the policy\n         said so\n         long\n");
    CHECK(in_columns(20, "- an item of a list of words\n") == "- an item of a list\n  of words\n");
    CHECK(in_columns(20, "12. an item of a list of words\n") == "12. an item of a\n    list of words\n");
    CHECK(in_columns(30, "agent as: the account pi-agent-alice\n") == "agent as: the account\n          pi-agent-alice\n");
    CHECK(in_columns(24, "ab  cd  the last of three columns\n") == "ab  cd  the last of\n        three columns\n");
}

TEST_CASE("a comment of a policy stays a comment")
{
    CHECK(in_columns(20, "  # who may run the agent where\n") == "  # who may run the\n  # agent where\n");
    CHECK(in_columns(20, "a: 1  # who may run the agent\n") == "a: 1  # who may run\n      # the agent\n");
}

TEST_CASE("columns are counted, not bytes, and colours take none")
{
    CHECK(in_columns(10, "ä ö ü ß é\n") == "ä ö ü ß é\n");
    CHECK(in_columns(10, "日本 日本 日本\n") == "日本 日本\n日本\n");
    CHECK(in_columns(10, "\033[1;31mone two\033[0m abc\n") == "\033[1;31mone two\033[0m\nabc\n");
}

TEST_CASE("the line of a file and its caret stay above each other")
{
    const std::string shown = "   12 | " + std::string(30, 'x') + " y\n      | " + std::string(30, ' ') + "^\n";
    CHECK(in_columns(20, shown) == shown);
}

TEST_CASE("what moves the cursor is left alone")
{
    CHECK(in_columns(10, "\r\033[Kone two three four five\n") == "\r\033[Kone two three four five\n");
}

TEST_CASE("words that say how something went have a colour, where there are colours")
{
    CHECK(in_colours("error: no\n") == "\033[1;31merror:\033[0m no\n");
    CHECK(in_colours("pi: denied: no\n") == "pi: \033[1;31mdenied:\033[0m no\n");
    CHECK(in_colours("pi-agentctl: warning: no\n") == "pi-agentctl: \033[33mwarning:\033[0m no\n");
    CHECK(in_colours("  held  x\n") == "  \033[32mheld\033[0m  x\n");
    CHECK(in_colours("an error: no\n") == "an error: no\n");
    CHECK(in_columns(200, "error: no\n") == "error: no\n");
    CHECK(as_failure("pi:", TextTerminal{80, true}) == "\033[1;31mpi:\033[0m");
    CHECK(as_failure("pi:", TextTerminal{80, false}) == "pi:");
    CHECK(as_failure("pi:", std::nullopt) == "pi:");
}

TEST_CASE("a stream to anything but a terminal is left alone")
{
    std::ostringstream out;
    {
        FittedStream stream(out, -1);
        CHECK(!stream.terminal());
        out << "as it is " << std::string(300, ' ') << "error: x";
    }
    CHECK(out.str() == "as it is " + std::string(300, ' ') + "error: x");
}

} // namespace terminal_text_test

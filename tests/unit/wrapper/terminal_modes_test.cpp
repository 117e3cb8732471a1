// What a dead agent leaves on a terminal, and what takes it away: wrapper/terminal_link.hpp
#include "wrapper/terminal_link.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace pi_agent;

namespace terminal_modes_test {

namespace {

std::string left_by(const std::string &output)
{
    TerminalModes modes;
    modes.watch(output);
    return modes.leave_sequence();
}

} // namespace

TEST_CASE("text and sequences that change no mode leave nothing")
{
    for (const std::string output :
         {"", "text\r\n", "\x1b[2J\x1b[1;1H", "\x1b[31mred\x1b[0m", "\x1b[1mbold\x1b[m", "\x1b[?2004$p", "\x1b[?u", "\x1b[c", "\x1b[>c",
          "\x1b[6n", "\x1b]0;title\x07", "\x1b]0;title\x1b\\", "\x1b(B", "\x1b[?2026$p", "\x1b[?99999999999999999999h", "\x1b[?7h\x1b[?25h",
          "\x1b[?1049l", "\xff\xfe caf\xc3\xa9"}) {
        CAPTURE(output);
        CHECK(left_by(output).empty());
    }
}

TEST_CASE("each mode that a shell does not expect is undone, and nothing that was undone already")
{
    struct Row {
        std::string output, left;
    };
    const std::vector<Row> rows = {
        {"\x1b[?1049h", "\x1b[?1049l"},
        {"\x1b[?1049h\x1b[?1049l", ""},
        {"\x1b[?25l", "\x1b[?25h"},
        {"\x1b[?7l", "\x1b[?7h"},
        {"\x1b[?1000;1006h", "\x1b[?1006l\x1b[?1000l"},
        {"\x1b[?1000;1006h\x1b[?1000l", "\x1b[?1006l"},
        {"\x1b[?2004h\x1b[?1004h\x1b[?2031h", "\x1b[?2031l\x1b[?2004l\x1b[?1004l"},
        {"\x1b[>7u", "\x1b[<u"},
        {"\x1b[>1u\x1b[>7u", "\x1b[<u\x1b[<u"},
        {"\x1b[>1u\x1b[>7u\x1b[<2u", ""},
        {"\x1b[>4;2m", "\x1b[>4;0m"},
        {"\x1b[>4;2m\x1b[>4;0m", ""},
        {"\x1b[1;31mred", "\x1b[0m"},
        {"\x1b[38:2::1:2:3mred\x1b[39m", "\x1b[0m"},
        {"\x1b=", "\x1b>"},
        {"\x1b=\x1b>", ""},
        {"\x1b]0;a title that is cut", "\x18"},
        {"\xc2\x9b?1049h", "\x1b[?1049l"},
        {"\xc2\x9d"
         "0;title\xc2\x9c\xc2\x9b?25l",
         "\x1b[?25h"},
        {"\x1b]0;caf\xc2\xa9 title\x07\x1b[?7l", "\x1b[?7h"},
        {"caf\xc2\xa9 \xc2", ""},
        {"\x1bPa string that is cut\xc2\x18", ""},
        {"\x1b[?10", "\x18"},
        {"\x1b[?1000h\x1b[?25l\x1b=\x1b[31m\x1b"
         "c",
         ""},
        {"\x1b]0;\x1b[?25l", "\x1b[?25h"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.output);
        CHECK(left_by(row.output) == row.left);
    }
}

TEST_CASE("the alternate screen is left last, so that the rest is undone where it was done")
{
    CHECK(left_by("\x1b[?1049h\x1b[?25l\x1b[?1003h") == "\x1b[?1003l\x1b[?25h\x1b[?1049l");
}

TEST_CASE("a sequence is the same wherever the stream is cut")
{
    const std::string output = "a\x1b[?1049;2004hb\x1b]8;;x\x1b\\\x1b[?25lc\x1b[>5u\x1b[>4;1m";
    const std::string whole = left_by(output);
    for (std::size_t first = 0; first <= output.size(); ++first)
        for (std::size_t second = first; second <= output.size(); ++second) {
            TerminalModes modes;
            modes.watch(output.substr(0, first));
            modes.watch(output.substr(first, second - first));
            modes.watch(output.substr(second));
            CHECK(modes.leave_sequence() == whole);
        }
}

TEST_CASE("what was left can be entered again")
{
    TerminalModes modes;
    modes.watch("\x1b[?1049h\x1b[?1000h\x1b[?25l\x1b[>1u\x1b[>7u\x1b[>4;2m\x1b=");
    TerminalModes again;
    again.watch(modes.enter_sequence());
    CHECK(again.leave_sequence() == modes.leave_sequence());
}

TEST_CASE("a sequence without end is given up and does not grow")
{
    CHECK(left_by("\x1b[?" + std::string(100'000, '1') + "\x1b[?25l") == "\x1b[?25h");
    CHECK(left_by("\x1b]0;" + std::string(100'000, 'x') + "\x07").empty());
}

TEST_CASE("an agent that says it popped or pushed the keyboard's state millions of times is not believed")
{
    CHECK(left_by("\x1b[?1003h\x1b[<-2000000000u") == "\x1b[?1003l");
    CHECK(left_by("\x1b[<99999999999999999999u").empty());
    std::string pushes;
    for (int count = 0; count < 1000; ++count)
        pushes += "\x1b[>1u";
    CHECK(left_by(pushes).size() <= 16 * std::string("\x1b[<u").size());
}

} // namespace terminal_modes_test

// What reaches the user's clipboard is left out, and nothing else: wrapper/terminal_link.hpp
#include "wrapper/terminal_link.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace pi_agent;

namespace clipboard_filter_test {

TEST_CASE("a control string for the clipboard is left out, however it is written and wherever it is cut")
{
    struct Row {
        std::string output, shown;
    };
    const std::string nul(1, '\0');
    const std::vector<Row> rows = {
        {"a\x1b]52;c;c2VjcmV0\x07z", "a\x18z"},
        {"a\x1b]52;c;c2VjcmV0\x1b\\z", "a\x18z"},
        {"a\x1b]52;c;?\x07z", "a\x18z"},
        {"a\x1b]0052;c;x\x07z", "a\x18z"},
        {"a\x1b]5" + nul + "2\x7f;c;x\x07z", "a\x18z"},
        {"a\x1b\n\x07]52;c;x\x07z", "a\x18z"},
        {"a\x1b]\xc2\x9d"
         "52;c;x\x07z",
         "a\x1b]\x18z"},
        {"a\xc2\x9d"
         "52;c;x\xc2\x9cz",
         "a\x18z"},
        {"a\x9d"
         "52;c;x\x07z",
         "a\x18z"},
        {"a\x1b]5522;type=write\x1b\\z", "a\x18z"},
        {"a\x1b]1337;Copy=:eA==\x07z", "a\x18z"},
        {"a\x1b]1337;CopyToClipboard=\x07z", "a\x18z"},
        {"\x1bPtmux;\x1b\x1b]52;c;x\x07\x1b\\z", "\x1bPtmux;\x18\x1b\\\x1b\x18\x1b\\z"},
        {"\x1bP\x1b]5\x1b\\\x1bP2;c;x\x07\x1b\\z", "\x1bP\x18\x1b\\\x1b]5\x1b\\\x1bP2;c;x\x07\x1b\\z"},
        {"\x1bP\xc2\x9d"
         "52;c;x\x07z",
         "\x1bP\x18\x1b\\\x18z"},
        {"\x1bP\xc2\x1b\\\x1bP\x9d"
         "52;c;x\x07z",
         "\x1bP\xc2\x1b\\\x1bP\x18\x1b\\\x18z"},
        {"\xc2\x90\x1b]5\x1b\\z", "\xc2\x90\x18\x1b\\\x1b]5\x1b\\z"},
        {"\x90\x1b]5\x1b\\z", "\x90\x18\x1b\\\x1b]5\x1b\\z"},
        {"a\x1b%@z", "a\x18z"},
        {"a\x1b%\n@z", "a\x18z"},
        {"a\x1b%/Gz", "a\x18z"},
        {"a\x1b%\x1b]52;c;x\x07z", "a\x1b%\x18z"},
        {"a\x1b]52;c;x\x1b[31mz", "a\x18\x1b[31mz"},
        {"\x1b\x1b]52;c;x\x07]52;c;y\x07z", "\x1b\x18]52;c;y\x07z"},
        {"\x1b]52;c;x\x1b]52;c;y\x07z", "\x18\x18z"},
        {"\x1b]" + std::string(100, '0') + "52;c;x\x07z", "\x18z"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.output);
        for (std::size_t cut = 0; cut <= row.output.size(); ++cut) {
            ClipboardFilter filter;
            const std::string first = filter.filter(row.output.substr(0, cut));
            CHECK(first + filter.filter(row.output.substr(cut)) == row.shown);
        }
    }
}

TEST_CASE("everything else passes byte by byte")
{
    for (const std::string output :
         {"text\r\n", "\x1b[31mred\x1b[0m", "\x1b]0;52;title\x07z", "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
          "\x1b]520;x\x07z", "\x1b]7501;?\x1b\\", "\x1b]7501;state=busy\x07z", "\x1b]1337;File=:eA==\x07z", "\x1b]52\x07z",
          "\x1b]5\x18"
          "2;x\x07z",
          "caf\xc3\xa9 \xe2\x9d\x9d"
          "52;x\xe2\x9c\x9d"
          "52;",
          "\xc2\xa0z", "\x1b\x1b[A", "\x1bPq#0\x1b\\z", "\x1bPq\xe2\x9d\x9d\x18\x1b]0;t\x07", "\x1bP$qm\xc2\x9c\x1b[m", "\x1b%Gz"}) {
        CAPTURE(output);
        for (std::size_t cut = 0; cut <= output.size(); ++cut) {
            ClipboardFilter filter;
            const std::string first = filter.filter(output.substr(0, cut));
            CHECK(first + filter.filter(output.substr(cut)) == output);
        }
    }
}

TEST_CASE("a terminal without UTF-8 takes a control for one wherever it stands")
{
    ClipboardFilter filter(false);
    CHECK(filter.filter("caf\xe9\x9d"
                        "52;c;x\x07z") == "caf\xe9\x18z");
}

} // namespace clipboard_filter_test

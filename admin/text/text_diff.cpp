// The difference of two texts, as diff(1) finds it.
#include "admin/text/terminal.hpp"

#include "admin/programs/program.hpp"
#include "common/base/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace pi_agent {

std::string text_diff(const std::string &old_name, const std::string &old_text, const std::string &new_name, const std::string &new_text)
{
    if (old_text == new_text) return "";
    std::string text = fmt::format("    --- {}\n    +++ {}\n", escape_for_display(old_name), escape_for_display(new_name));
    const auto old_file = in_memory_input(old_text); // diff opens it again: it has one standard input
    const std::string old_path = fmt::format("/proc/{}/fd/{}", ::getpid(), old_file.get());
    const bool is_there = has_program("diff");
    const auto result =
        is_there ? run_program({"diff", "--text", "--unified", old_path, "-"}, new_text) : ProgramResult{2, "not installed"};
    if (result.status != 1) // a change never waits for its picture, least of all an emergency stop
        return text + fmt::format("    (diff shows no lines: {})\n", escape_for_display(result.output));
    std::size_t head = 2; // the names that diff saw
    for (const auto line : split(result.output, '\n')) {
        if (head > 0)
            --head;
        else // a backslash is diff's own: the file lacks its last line feed
            text += fmt::format("    {}\n", line.starts_with('\\') ? std::string(line) : escape_for_display(line));
    }
    return text;
}

} // namespace pi_agent

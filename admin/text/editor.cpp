// Choosing by trust in who set a variable.
#include "admin/text/terminal.hpp"

#include "admin/programs/program.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <sstream>

namespace pi_agent {

namespace {

bool was_called_by_somebody(const Variable &variable)
{
    constexpr std::array<const char *, 5> traces = {"SUDO_UID", "SUDO_USER", "SUDO_COMMAND", "PKEXEC_UID", "DOAS_USER"};
    return std::any_of(traces.begin(), traces.end(), [&](const char *name) { return variable(name).has_value(); });
}

// Terminal types and languages are such words. A slash would name a file that a library reads.
bool is_plain_value(const std::string &value)
{
    return !value.empty() && is_made_of(value, "._-+@");
}

void require_trusted(const std::string &program, const std::string &variable)
{
    if (program.front() == '/')
        open_trusted(program, O_PATH, "editor that " + variable + " names");
    else if (program.find('/') != std::string::npos)
        throw Failure(ExitStatus::configuration,
                      variable + " names the editor " + escape_for_display(program) + " by a relative path; write the whole one");
    else
        require_program(program);
}

} // namespace

Variable own_environment()
{
    return [](const std::string &name) -> std::optional<std::string> {
        const char *value = std::getenv(name.c_str()); // NOLINT(concurrency-mt-unsafe): this program has one thread
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
}

std::vector<std::string> choose_editor(const Variable &variable)
{
    if (!was_called_by_somebody(variable) || !defence_is_on("editor-choice")) {
        for (const auto *name : {"SUDO_EDITOR", "VISUAL", "EDITOR"}) {
            std::istringstream value(variable(name).value_or(""));
            std::vector<std::string> words(std::istream_iterator<std::string>(value), {});
            if (words.empty()) continue;
            require_trusted(words.front(), name);
            return words;
        }
    }
    for (const auto *name : {"editor", "nano", "vi"})
        if (has_program(name)) return {name};
    throw Failure(ExitStatus::configuration,
                  "there is no editor: none of editor, nano and vi is installed; install one, or, as root without "
                  "sudo, name one in EDITOR");
}

int run_editor(const std::vector<std::string> &editor, const std::string &file, const Variable &variable)
{
    std::vector<std::string> variables = {"HOME=/root"};
    for (const auto *name : {"TERM", "COLORTERM", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"})
        if (const auto value = variable(name); value && is_plain_value(*value)) variables.push_back(std::string(name) + "=" + *value);
    auto arguments = editor;
    arguments.push_back(file);
    return run_at_terminal(arguments, variables);
}

} // namespace pi_agent

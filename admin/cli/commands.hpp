// The command line of pi-agentctl: its commands, and proposals for the shells.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

// What the command line asks for. It throws Failure, or Nothing (admin/text/terminal.hpp).
using Action = std::function<void()>;

// Adds all commands to `app`; the given one leaves in `chosen` what it does.
void add_commands(CLI::App &app, Action &chosen);

// For the shells' completions: candidates for the last of `words`, which are the command line after the program's name. A line for each
// candidate: the word, a tab, what it means.
std::string complete(const CLI::App &app, std::vector<std::string> words);

// The commands below `app`, in the order of its help.
inline std::vector<const CLI::App *> commands_below(const CLI::App &app)
{
    return app.get_subcommands([](const CLI::App * /*any*/) { return true; });
}

} // namespace pi_agent

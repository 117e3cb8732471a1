// The command line of pi-agentctl: its commands, and their options and arguments.
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

// The options of its command init.
struct InitOrder;
void add_init_options(CLI::App &init, InitOrder &order);

// The commands about agents: install-agent, and agent with what is below it.
void add_agent_commands(CLI::App &app, Action &chosen);

// The commands that change one thing in the policy: user with what is below it, set; and get.
void add_change_commands(CLI::App &app, Action &chosen);

// For the shells' completions: candidates for the last of `words`, which are the command line after the program's name. A line for each
// candidate: the word, a tab, what it means.
std::string complete(const CLI::App &app, std::vector<std::string> words);

// The commands below `app`, in the order of its help.
inline std::vector<const CLI::App *> commands_below(const CLI::App &app)
{
    return app.get_subcommands([](const CLI::App * /*any*/) { return true; });
}

} // namespace pi_agent

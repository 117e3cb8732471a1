// The command line of pi-agentctl: its commands, and how each gets its options and arguments.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
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

// --- How a command gets its name, its help and the options that many commands have.

// Sets what -v and -q do, from now on.
void log_steps();
void be_quiet();

// A command of that name. `run` is what happens when the command itself is given, and not one below it.
template <typename Run>
CLI::App *add_command(CLI::App &app, Action &chosen, const char *name, const char *help, const Run &run)
{
    auto *command = app.add_subcommand(name, help);
    command->callback([command, &chosen, run] {
        if (command->get_subcommands().empty()) chosen = run;
    });
    command->add_flag_callback("-q,--quiet", be_quiet, "Print nothing on standard output: the exit status says it");
    command->add_flag_callback("-v,--verbose", log_steps, "Say on standard error what is started, written, removed and locked, and when");
    return command;
}

// An option that may be left out. CLI11's own would take an empty value for none.
inline CLI::Option *add_optional(CLI::App *command, const char *name, std::optional<std::string> &value, const char *help)
{
    return command->add_option_function<std::string>(
        name, [&value](const std::string &given) { value = given; }, help);
}

inline CLI::Option *add_user(CLI::App *command, std::optional<std::string> &user, const char *help)
{
    return add_optional(command, "--user", user, help)->type_name("NAME");
}

inline void add_json(CLI::App *command, bool &json)
{
    command->add_flag("--json", json, "Print JSON");
}

// The commands that look, and write down what they see.
void add_diagnosis_commands(CLI::App &app, Action &chosen);

} // namespace pi_agent

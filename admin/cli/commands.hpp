// The command line of pi-agentctl: each group of commands adds itself to it, in a function of a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// What the command line asks for. It throws Failure, or Nothing (admin/text/terminal.hpp).
using Deed = std::function<void()>;

// Each adds its commands to `app`; the one that is given leaves in `chosen` what it does.
void add_policy_commands(CLI::App &app, Deed &chosen);    // check, schema, init, edit, apply, rollback, sudoers, remove
void add_session_commands(CLI::App &app, Deed &chosen);   // sessions, stop, logs, history, state
void add_diagnosis_commands(CLI::App &app, Deed &chosen); // doctor, explain, why, shell, version, render

// For the shells' completions: what may stand in the place of the last of `words`, the command line after the program's name. A line for
// each candidate: the word, a tab, what it means; ":paths" and ":directories" ask the shell for paths.
std::string complete(const CLI::App &app, std::vector<std::string> words);

// The commands below `app`, in the order of its help.
inline std::vector<const CLI::App *> commands_below(const CLI::App &app)
{
    return app.get_subcommands([](const CLI::App * /*any*/) { return true; });
}

// A command of that name, and `run` as what happens when it itself is given, and not one below it.
template <typename Run>
CLI::App *add_command(CLI::App &app, Deed &chosen, const char *name, const char *help, const Run &run)
{
    auto *command = app.add_subcommand(name, help);
    command->callback([command, &chosen, run] {
        if (command->get_subcommands().empty()) chosen = run;
    });
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

} // namespace pi_agent

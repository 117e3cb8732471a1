// The command line of pi-agentctl: each group of commands adds itself to it, in a function of a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// What the command line asks for. It throws Failure, or Nothing (admin/text/terminal.hpp).
using Action = std::function<void()>;

// Each adds its commands to `app`; the one that is given leaves in `chosen` what it does.
void add_policy_commands(CLI::App &app, Action &chosen);    // check, schema, init, edit, apply, rollback, sudoers, remove
void add_session_commands(CLI::App &app, Action &chosen);   // sessions, stop, logs, history
void add_state_commands(CLI::App &app, Action &chosen);     // state
void add_diagnosis_commands(CLI::App &app, Action &chosen); // doctor, explain, why, shell, version
void add_render_command(CLI::App &app, Action &chosen);     // render

// For the shells' completions: what may stand in the place of the last of `words`, the command line after the program's name. A line for
// each candidate: the word, a tab, what it means; ":paths" and ":directories" ask the shell for paths.
std::string complete(const CLI::App &app, std::vector<std::string> words);

// The value of an option that may be left out.
template <typename Value>
std::optional<Value> given(const CLI::Option *option, const Value &value)
{
    return option->count() > 0 ? std::optional<Value>(value) : std::nullopt;
}

// Makes `run` what happens when `command` itself is given, and not one below it.
template <typename Run>
void on(CLI::App *command, Action &chosen, const Run &run)
{
    command->callback([command, &chosen, run] {
        if (command->get_subcommands().empty()) chosen = run;
    });
}

} // namespace pi_agent

// The command line of `state` and what is below it: prune, reset, export.
#include "admin/cli/commands.hpp"
#include "admin/state/state.hpp"
#include "common/base/error.hpp"

#include <fmt/format.h>
#include <iostream>

namespace pi_agent {

namespace {

struct StateOptions {
    std::string user, directory;
    bool yes = false, json = false;
};

// What is given to `state` itself would be forgotten by a command below it: "state --user alice prune" prunes everybody's.
void refuse_before(const CLI::App &command, const CLI::App &state)
{
    for (const auto *option : state.get_options())
        if (option->count() > 0)
            throw Failure(ExitStatus::usage, fmt::format("say {} after '{}': pi-agentctl state {} {}", option->get_name(),
                                                         command.get_name(), command.get_name(), option->get_name()));
}

void add_prune(CLI::App &state, Action &chosen)
{
    const auto all = std::make_shared<StateOptions>();
    auto *prune = state.add_subcommand("prune", "Remove caches of users who have no session now, and what sessions left");
    const auto *user = prune->add_option("--user", all->user, "Only of this user")->type_name("NAME");
    prune->add_flag("--yes", all->yes, "Do not ask");
    on(prune, chosen, [=, &state] {
        refuse_before(*prune, state);
        run_state_prune(given(user, all->user), all->yes, std::cout);
    });
}

void add_reset(CLI::App &state, Action &chosen)
{
    const auto all = std::make_shared<StateOptions>();
    auto *reset = state.add_subcommand("reset", "Empty a user's agent home: the next start is like the first");
    reset->add_option("--user", all->user, "Whose")->type_name("NAME")->required();
    reset->add_flag("--yes", all->yes, "Do not ask");
    on(reset, chosen, [=, &state] {
        refuse_before(*reset, state);
        run_state_reset(all->user, all->yes, std::cout);
    });
}

void add_export(CLI::App &state, Action &chosen)
{
    const auto all = std::make_shared<StateOptions>();
    auto *exporting = state.add_subcommand("export", "Copy the agent's session files of a user into a directory of that user");
    exporting->add_option("--user", all->user, "Whose")->type_name("NAME")->required();
    exporting->add_option("DIRECTORY", all->directory, "A new directory, or an empty one of the user")->required();
    on(exporting, chosen, [=, &state] {
        refuse_before(*exporting, state);
        run_state_export(all->user, all->directory, std::cout);
    });
}

} // namespace

void add_state_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<StateOptions>();
    auto *state = app.add_subcommand("state", "Show how large each user's agent home, caches and temporary files are");
    const auto *user = state->add_option("--user", all->user, "Only of this user")->type_name("NAME");
    state->add_flag("--json", all->json, "Print JSON");
    state->require_subcommand(0, 1);
    add_prune(*state, chosen);
    add_reset(*state, chosen);
    add_export(*state, chosen);
    on(state, chosen, [all, user] { run_state(given(user, all->user), all->json, std::cout); });
}

} // namespace pi_agent

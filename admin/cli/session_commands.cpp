// The command line of the commands about sessions and what is kept for them: sessions, stop, logs, history, and state with those below it.
#include "admin/cli/commands.hpp"
#include "admin/sessions/history.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_paths.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <iostream>

namespace pi_agent {

namespace {

struct SessionOptions {
    StopOrder stop;
    HistoryQuery history;
    std::optional<std::string> user, since, until, project;
    std::string id, whose, directory;
    bool all = false, json = false, yes = false;
};

void add_stop(CLI::App &app, Deed &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto *stop = add_command(app, chosen, "stop", "End sessions, and wait until they are gone", [all] {
        if (!all->stop.id && !all->stop.user && !all->all)
            throw Failure(ExitStatus::usage, "which session? name its id, or say --user NAME or --all; see 'pi-agentctl sessions'");
        run_stop(all->stop, std::cout);
    });
    auto *id = add_optional(stop, "SESSION", all->stop.id, "The id of one, or its beginning");
    auto *user = add_user(stop, all->stop.user, "All sessions of this user");
    auto *every = stop->add_flag("--all", all->all, "All sessions of everybody");
    id->excludes(user)->excludes(every);
    user->excludes(every);
}

void add_history(CLI::App &app, Deed &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto &query = all->history;
    auto *history = add_command(app, chosen, "history", "List past sessions and refusals from the record", [all, &query] {
        if (all->project) query.project = without_trailing_slashes(std::filesystem::absolute(*all->project).lexically_normal());
        if (all->since) query.since = parse_time(*all->since, now_microseconds());
        if (all->until) query.until = parse_time(*all->until, now_microseconds());
        run_history(query, all->json, std::cout, std::cerr);
    });
    add_user(history, query.user, "Only of this user");
    add_optional(history, "--since", all->since, "'2026-03-01 12:00', today, yesterday, 2h (ago)")->type_name("TIME");
    add_optional(history, "--until", all->until, "The same; what began later is left out")->type_name("TIME");
    add_optional(history, "--project", all->project, "Only those that were begun in this directory")->type_name("DIRECTORY");
    history->add_flag("--failed", query.failed, "Only refusals, failures, and sessions that did not end with exit code 0");
    history->add_flag("--probes", query.probes, "With the sessions in which apply and doctor tried the sandbox");
    add_json(history, all->json);
}

void add_state(CLI::App &app, Deed &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto *state = add_command(app, chosen, "state", "Show how large each user's agent home, caches and temporary files are",
                              [all] { run_state(all->user, all->json, std::cout); });
    add_user(state, all->user, "Only of this user");
    add_json(state, all->json);
    state->require_subcommand(0, 1);
    // What is given to `state` itself would be forgotten by a command below it: "state --user alice prune" prunes everybody's.
    const auto add_below = [&](const char *name, const char *help, const Deed &run) {
        return add_command(*state, chosen, name, help, [state, name, run] {
            for (const auto *option : state->get_options())
                if (option->count() > 0)
                    throw Failure(ExitStatus::usage,
                                  fmt::format("say {0} after '{1}': pi-agentctl state {1} {0}", option->get_name(), name));
            run();
        });
    };
    const auto add_whose = [&](CLI::App *command) { command->add_option("--user", all->whose, "Whose")->type_name("NAME")->required(); };

    auto *prune = add_below("prune", "Remove caches of users who have no session now, and what sessions left",
                            [all] { run_state_prune(all->user, all->yes, std::cout); });
    add_user(prune, all->user, "Only of this user");
    prune->add_flag("--yes", all->yes, "Do not ask");

    auto *reset = add_below("reset", "Empty a user's agent home: the next start is like the first",
                            [all] { run_state_reset(all->whose, all->yes, std::cout); });
    add_whose(reset);
    reset->add_flag("--yes", all->yes, "Do not ask");

    auto *exporting = add_below("export", "Copy the agent's session files of a user into a directory of that user",
                                [all] { run_state_export(all->whose, all->directory, std::cout); });
    add_whose(exporting);
    exporting->add_option("DIRECTORY", all->directory, "A new directory, or an empty one of the user")->required();
}

} // namespace

void add_session_commands(CLI::App &app, Deed &chosen)
{
    const auto all = std::make_shared<SessionOptions>();
    auto *sessions = add_command(app, chosen, "sessions", "List the sessions that live, and what each uses now",
                                 [all] { run_sessions(all->user, all->json, std::cout); });
    add_user(sessions, all->user, "Only those of this user");
    add_json(sessions, all->json);
    add_stop(app, chosen, all);
    auto *logs = add_command(app, chosen, "logs", "Print what is logged of a session, its record and that of its units",
                             [all] { run_logs(all->id, std::cout); });
    logs->add_option("SESSION", all->id, "Its id, or the beginning of that")->required();
    add_history(app, chosen, all);
    add_state(app, chosen, all);
}

} // namespace pi_agent

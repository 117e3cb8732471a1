// The command line of the commands about sessions: sessions, stop, logs, history.
#include "admin/cli/commands.hpp"
#include "admin/sessions/history.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_paths.hpp"

#include <filesystem>
#include <iostream>

namespace pi_agent {

namespace {

struct SessionOptions {
    std::string id, user, since, until, project;
    bool all = false, failed = false, probes = false, json = false;
};

void add_sessions(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<SessionOptions>();
    auto *sessions = app.add_subcommand("sessions", "List the sessions that live, and what each uses now");
    const auto *user = sessions->add_option("--user", all->user, "Only those of this user")->type_name("NAME");
    sessions->add_flag("--json", all->json, "Print JSON");
    on(sessions, chosen, [all, user] { run_sessions(given(user, all->user), all->json, std::cout); });
}

void add_stop(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<SessionOptions>();
    auto *stop = app.add_subcommand("stop", "End sessions, and wait until they are gone");
    auto *id = stop->add_option("SESSION", all->id, "The id of one, or its beginning");
    auto *user = stop->add_option("--user", all->user, "All sessions of this user")->type_name("NAME");
    auto *every = stop->add_flag("--all", all->all, "All sessions of everybody");
    id->excludes(user)->excludes(every);
    user->excludes(every);
    on(stop, chosen, [all, id, user] {
        if (id->count() == 0 && user->count() == 0 && !all->all)
            throw Failure(ExitStatus::usage, "which session? name its id, or say --user NAME or --all; see 'pi-agentctl sessions'");
        run_stop({given(id, all->id), given(user, all->user)}, std::cout);
    });
}

void add_logs(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<SessionOptions>();
    auto *logs = app.add_subcommand("logs", "Print what is logged of a session, its record and that of its units");
    logs->add_option("SESSION", all->id, "Its id, or the beginning of that")->required();
    on(logs, chosen, [all] { run_logs(all->id, std::cout); });
}

void add_history(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<SessionOptions>();
    auto *history = app.add_subcommand("history", "List past sessions and refusals from the record");
    const auto *user = history->add_option("--user", all->user, "Only of this user")->type_name("NAME");
    const auto *since = history->add_option("--since", all->since, "'2026-03-01 12:00', today, yesterday, 2h (ago)")->type_name("TIME");
    const auto *until = history->add_option("--until", all->until, "The same; what began later is left out")->type_name("TIME");
    const auto *project =
        history->add_option("--project", all->project, "Only those that were begun in this directory")->type_name("DIRECTORY");
    history->add_flag("--failed", all->failed, "Only refusals, failures, and sessions that did not end with exit code 0");
    history->add_flag("--probes", all->probes, "With the sessions in which apply and doctor tried the sandbox");
    history->add_flag("--json", all->json, "Print JSON");
    on(history, chosen, [=] {
        HistoryQuery query{given(user, all->user), {}, {}, {}, all->failed, all->probes};
        if (project->count() > 0) query.project = without_trailing_slashes(std::filesystem::absolute(all->project).lexically_normal());
        if (since->count() > 0) query.since = parse_time(all->since, now_microseconds());
        if (until->count() > 0) query.until = parse_time(all->until, now_microseconds());
        run_history(query, all->json, std::cout, std::cerr);
    });
}

} // namespace

void add_session_commands(CLI::App &app, Action &chosen)
{
    add_sessions(app, chosen);
    add_stop(app, chosen);
    add_logs(app, chosen);
    add_history(app, chosen);
}

} // namespace pi_agent

// The commands of pi-agentctl with their options, and what each does.
#include "admin/cli/commands.hpp"

#include "admin/apply/apply.hpp"
#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/render/render.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <filesystem>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>
#include <optional>

namespace pi_agent {

namespace {

// A command of that name, and `run` as what happens when it itself is given, and not one below it.
template <typename Run>
CLI::App *add_command(CLI::App &app, Action &chosen, const char *name, const char *help, const Run &run)
{
    auto *command = app.add_subcommand(name, help);
    command->callback([command, &chosen, run] {
        if (command->get_subcommands().empty()) chosen = run;
    });
    command->add_flag_callback("-v,--verbose", log_steps, "Say on standard error what is started, written, removed and locked, and when");
    return command;
}

// An option that may be left out. CLI11's own would take an empty value for none.
CLI::Option *add_optional(CLI::App *command, const char *name, std::optional<std::string> &value, const char *help)
{
    return command->add_option_function<std::string>(
        name, [&value](const std::string &given) { value = given; }, help);
}

CLI::Option *add_user(CLI::App *command, std::optional<std::string> &user, const char *help)
{
    return add_optional(command, "--user", user, help)->type_name("NAME");
}

void add_json(CLI::App *command, bool &json)
{
    command->add_flag("--json", json, "Print JSON");
}

// --- about the policy: init, check, schema, edit, apply, rollback, sudoers, remove

struct PolicyOptions {
    InitOrder init;
    RemoveOrder remove;
    std::optional<std::string> file;
    bool dry_run = false, no_canary = false, json = false, policy_only = false, yes = false;

    [[nodiscard]] ApplyOptions for_apply() const { return {dry_run, !no_canary}; }
};

void add_applying(CLI::App *command, PolicyOptions &options)
{
    command->add_flag("--dry-run", options.dry_run, "Say what would change, with the lines of files, and change nothing");
    command->add_flag("--no-canary", options.no_canary,
                      "Do not try the sandbox: where no session can run yet, as in an image that is being built");
}

void add_policy_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<PolicyOptions>();
    auto *init = add_command(app, chosen, "init", "Write a first policy from the users and directories of this host",
                             [all] { run_init(all->init, std::cout, std::cerr); });
    add_init_options(*init, all->init);

    auto *check =
        add_command(app, chosen, "check", "Check the policy and whether this host fits it; as root, the roots of every user too", [all] {
            run_check(all->file, all->policy_only ? CheckScope::policy_only : CheckScope::host, all->json, std::cout, std::cerr);
        });
    add_optional(check, "FILE", all->file, "A draft to check instead of the installed policy, alone and without policy.d");
    check->add_flag("--policy-only", all->policy_only,
                    "The policy alone, not whether this host fits it: where a system is built for another");
    add_json(check, all->json);

    add_command(app, chosen, "schema", "Print a JSON Schema of the policy, for editors", [] { run_schema(std::cout); });

    auto *edit = add_command(app, chosen, "edit", "Change the policy with an editor; what is not valid never takes its place",
                             [all] { run_edit(all->file, std::cout, std::cerr); });
    add_optional(edit, "FILE", all->file,
                 "The file to change, of policy.d by its name there, or users.d/NAME.yaml; without it the main one");

    auto *apply =
        add_command(app, chosen, "apply", "Make the host follow the policy: accounts, directories, the agent's program, the sudo rule",
                    [all] { run_apply(all->for_apply(), std::cout, std::cerr); });
    add_applying(apply, *all);

    auto *rollback = add_command(app, chosen, "rollback", "Put the policy back that was applied before, and apply it",
                                 [all] { run_rollback(all->yes, all->for_apply(), std::cout, std::cerr); });
    rollback->add_flag("--yes", all->yes, "Do not ask");
    add_applying(rollback, *all);

    add_command(app, chosen, "sudoers", "Print the sudo rule that apply would install, after visudo has checked it",
                [] { run_sudoers(std::cout, std::cerr); });

    auto *remove = add_command(app, chosen, "remove", "Undo what apply did: the sudo rule, the hidden program",
                               [all] { run_remove(all->remove, std::cout); });
    remove->add_flag("--state", all->remove.state, "Remove what is kept for each user too: the agents' homes");
    remove->add_flag("--accounts", all->remove.accounts, "With --state: remove the agents' accounts too");
    remove->add_flag("--keep-hidden", all->remove.keep_hidden, "Leave the agent's program closed to everybody but root");
    remove->add_flag("--yes", all->remove.yes, "Do not ask");
    remove->add_flag("--dry-run", all->remove.dry_run, "Say what would change, and change nothing");
}

// --- about sessions, and what is kept for them: sessions, stop, logs, history, and state with what is below it

struct SessionOptions {
    StopOrder stop;
    HistoryQuery history;
    std::optional<std::string> user, since, until, project;
    std::string id, whose, directory;
    bool all = false, json = false, yes = false;
};

void add_stop(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
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

void add_history(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
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

void add_state(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto *state = add_command(app, chosen, "state", "Show how large each user's agent home, caches and temporary files are",
                              [all] { run_state(all->user, all->json, std::cout); });
    add_user(state, all->user, "Only of this user");
    add_json(state, all->json);
    state->require_subcommand(0, 1);
    // What is given to `state` itself would be forgotten by a command below it: "state --user alice prune" prunes everybody's.
    const auto add_below = [&](const char *name, const char *help, const Action &run) {
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

void add_session_commands(CLI::App &app, Action &chosen)
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

// --- that look, and write down what they see: doctor, explain, why, shell, version, render

struct DiagnosisOptions {
    DoctorOptions doctor;
    WhyOptions why;
    RenderOptions render;
    std::optional<std::string> user, directory;
    bool json = false;
    std::vector<std::string> arguments;
};

void add_cwd(CLI::App *command, std::optional<std::string> &directory, const char *help)
{
    add_optional(command, "--cwd", directory, help)->type_name("DIRECTORY");
}

void add_render(CLI::App &app, Action &chosen, const std::shared_ptr<DiagnosisOptions> &all)
{
    auto &options = all->render;
    options.image = default_image();
    auto *render =
        add_command(app, chosen, "render", "Write what a start of pi would be given for an engine that exists: a container, a unit, a job",
                    [all] { run_render(all->render, std::cout); });
    render->add_option("--target", options.target, fmt::format("What to write: {}", fmt::join(render_targets(), ", ")))
        ->type_name("TARGET")
        ->required();
    add_user(render, options.user, "Whose access; all targets but seccomp want it");
    add_cwd(render, options.directory, "Where pi would be started; all targets but seccomp want it");
    render->add_option("--image", options.image, "The image of a container")->type_name("IMAGE")->capture_default_str();
    render->add_option("--volume", options.volume, "Where a cluster has the workspaces: SERVER:/EXPORT of NFS, or efs:fs-ID:fsap-ID")
        ->type_name("VOLUME");
    render->add_option("ARGUMENT", options.arguments, "Arguments of the agent, after --");
}

void add_diagnosis_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    auto *doctor =
        add_command(app, chosen, "doctor", "Look for every way around pi and every reason why it would not start, and try the sandbox",
                    [all] { run_doctor(all->doctor, std::cout); });
    add_user(doctor, all->doctor.user, "Who tries the sandbox; without it the first user who has a root");
    doctor->add_flag("--attack", all->doctor.attack, "Print everything that the sandbox was tried with, and what came of it");
    add_json(doctor, all->doctor.json);

    auto *explain = add_command(app, chosen, "explain", "Explain what the policy grants to a user, and where",
                                [all] { run_explain(all->user, all->directory, all->json, std::cout); });
    add_user(explain, all->user, "Whose access; without it your own, and for root a list of everybody");
    add_cwd(explain, all->directory, "The directory to start pi in");
    add_json(explain, all->json);

    auto *why = add_command(app, chosen, "why", "Say whether the agent may read or write paths, by which rule, and which key changes it",
                            [all] { run_why(all->why, std::cout); });
    why->add_option("PATH", all->why.paths, "What to ask about; relative paths count from the directory")->required();
    add_user(why, all->why.user, "Whose agent; without it your own");
    add_cwd(why, all->why.directory, "Where pi would be started; without it here");
    add_json(why, all->why.json);

    // Only for help and completion: main.cpp takes the words, for options are bash's.
    auto *shell = add_command(app, chosen, "shell", "Start a shell in the agent's place, in this directory: what it sees, the agent sees",
                              [all] { become_shell(all->arguments); });
    shell->remove_option(shell->get_option("--verbose")); // -v is bash's
    shell->add_option("ARGUMENT", all->arguments, "Arguments of bash, options too: shell -c 'ls /'");

    auto *version = add_command(app, chosen, "version", "Print the versions of pi-agent, systemd, the kernel and, as root, the agent",
                                [all] { run_version(all->json, std::cout); });
    add_json(version, all->json);
    add_render(app, chosen, all);
}

} // namespace

void add_commands(CLI::App &app, Action &chosen)
{
    add_policy_commands(app, chosen);
    add_agent_commands(app, chosen);
    add_session_commands(app, chosen);
    add_diagnosis_commands(app, chosen);
}

} // namespace pi_agent

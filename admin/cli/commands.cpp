// The commands of pi-agentctl with their options, and what each does.
#include "admin/cli/commands.hpp"

#include "admin/agents/agents.hpp"
#include "admin/apply/apply.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>

namespace pi_agent {

namespace {

// --- the commands that change one thing in the policy, and read one: user with what is below it, set and get

struct KeyChange {
    ChangeOrder order;
    std::string name, key, value;
    std::vector<std::string> roots;
    bool json = false;
};

void add_dry_run(CLI::App *command, KeyChange &change)
{
    command->add_flag("-n,--dry-run", change.order.dry_run, "Show the lines that would change, and change nothing");
}

void add_change_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<KeyChange>();
    auto *user = app.add_subcommand("user", "Add a user to the policy, or take one out: add, remove");
    user->require_subcommand(1);
    auto *add = add_command(*user, chosen, "add", "Write an entry for a user, into users.d",
                            [all] { run_user_add(all->name, all->roots, all->order, std::cout, std::cerr); });
    add->add_option("NAME", all->name, "The user's account")->required();
    add->add_option("--root", all->roots, "Where they may start the agent: an absolute path, or '~/…' in quotes; as often as needed")
        ->type_name("DIRECTORY")
        ->required();
    add_dry_run(add, *all);

    auto *remove = add_command(*user, chosen, "remove", "Take a user's entry out of the policy",
                               [all] { run_user_remove(all->name, all->order, std::cout, std::cerr); });
    remove->add_option("NAME", all->name, "The user's account")->required();
    remove->add_flag("-y,--yes", all->order.yes, "Do not ask");
    add_dry_run(remove, *all);

    auto *set = add_command(app, chosen, "set", "Give a key of the policy a value",
                            [all] { run_set(all->key, all->value, all->order, std::cout, std::cerr); });
    set->add_option("KEY", all->key, "limits.memory, network, users.NAME.roots")->required();
    set->add_option("VALUE", all->value, "A text, or YAML in one line: 8G, true, '[~/projects, /srv/app]'")->required();
    add_dry_run(set, *all);

    auto *get = add_command(app, chosen, "get", "Print the value that the policy gives to a key",
                            [all] { run_get(all->key, all->json, std::cout); });
    get->add_option("KEY", all->key, "limits.memory, network, users.NAME.roots")->required();
    add_json(get, all->json);
}

// --- the commands that install agents: install-agent, and agent list, upgrade, rollback and prune

struct AgentOptions {
    InstallOrder install;
    bool json = false, yes = false;
};

void add_installing(CLI::App *command, AgentOptions &options)
{
    command->add_option(
        "AGENT", options.install.request,
        "AGENT or AGENT@VERSION, where VERSION is exact or a tag such as latest; without it pi, as this release was tested");
    command->add_option("--registry", options.install.registry, "The npm registry; without it the one in this host's npm configuration")
        ->type_name("URL");
}

void add_agent_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<AgentOptions>();
    auto *install = add_command(app, chosen, "install-agent", "Fetch an agent from an npm registry, and make it the one that starts",
                                [all] { run_install_agent(all->install, std::cout); });
    add_installing(install, *all);

    auto *agent = app.add_subcommand("agent", "Look after installed agents: list, upgrade, rollback, prune");
    agent->require_subcommand(1);
    auto *list = add_command(*agent, chosen, "list", "List the agents that are installed, with their versions",
                             [all] { run_agent_list(all->json, std::cout); });
    add_json(list, all->json);

    auto *upgrade =
        add_command(*agent, chosen, "upgrade", "Install the version that this release was tested with, or the one named", [all] {
            all->install.is_upgrade = true;
            run_install_agent(all->install, std::cout);
        });
    add_installing(upgrade, *all);

    auto *rollback = add_command(*agent, chosen, "rollback", "Start the version before again; a second rollback takes it back",
                                 [all] { run_agent_rollback(all->install.request, all->yes, std::cout); });
    rollback->add_option("AGENT", all->install.request, "The agent; without it pi");
    rollback->add_flag("-y,--yes", all->yes, "Do not ask");

    auto *prune = add_command(*agent, chosen, "prune", "Remove versions other than the one in use and the one before",
                              [all] { run_agent_prune(all->yes, std::cout); });
    prune->add_flag("-y,--yes", all->yes, "Do not ask");
}

// --- about the policy: init, check, schema, edit, apply, rollback, sudoers, remove, prune

struct PolicyOptions {
    InitOrder init;
    RemoveOrder remove;
    PruneOrder prune;
    std::optional<std::string> file;
    bool dry_run = false, no_canary = false, json = false, policy_only = false, yes = false;

    [[nodiscard]] ApplyOptions for_apply() const { return {dry_run, !no_canary}; }
};

// An answer to each of its questions.
void add_init_options(CLI::App *init, InitOrder &order)
{
    init->add_option("--user", order.users, "Who may run the agent; without it everybody who keeps projects here")->type_name("NAME");
    init->add_option("--root", order.roots, "Where, for these users; without it ~/projects, ~/src and similar")->type_name("DIRECTORY");
    add_optional(init, "--network", order.network,
                 "What sessions reach: hosts (the provider's), names of hosts, full, loopback, none, or addresses; separated by commas")
        ->type_name("NETWORK");
    add_optional(init, "--key", order.key,
                 "A provider whose key everybody uses, or none. The key is asked for, or is the first line of standard input")
        ->type_name("PROVIDER");
    add_optional(init, "--env-file", order.env_file, "A file of variables with the keys that everybody uses; only root can read it")
        ->type_name("FILE");
    add_optional(init, "--output", order.output, "Where to write it; - is standard output")->type_name("FILE");
    init->add_flag("-y,--yes", order.yes, "Ask nothing, also at a terminal");
}

void add_applying(CLI::App *command, PolicyOptions &options)
{
    command->add_flag("-n,--dry-run", options.dry_run, "Say what would change, with the lines of files, and change nothing");
    command->add_flag("--no-canary", options.no_canary,
                      "Do not try the sandbox: where no session can run yet, as in an image that is being built");
}

void add_policy_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<PolicyOptions>();
    auto *init = add_command(app, chosen, "init", "Write a first policy from the users and directories of this host",
                             [all] { run_init(all->init, std::cout, std::cerr); });
    add_init_options(init, all->init);

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
    rollback->add_flag("-y,--yes", all->yes, "Do not ask");
    add_applying(rollback, *all);

    add_command(app, chosen, "sudoers", "Print the sudo rule that apply would install, after visudo has checked it",
                [] { run_sudoers(std::cout, std::cerr); });

    auto *remove = add_command(app, chosen, "remove", "Undo what apply did: the sudo rule, the hidden program",
                               [all] { run_remove(all->remove, std::cout); });
    remove->add_flag("--state", all->remove.state, "Remove what is kept for each user too: the agents' homes");
    remove->add_flag("--accounts", all->remove.accounts, "With --state: remove the agents' accounts too");
    remove->add_flag("--keep-hidden", all->remove.keep_hidden, "Leave the agent's program closed to everybody but root");
    remove->add_flag("-y,--yes", all->remove.yes, "Do not ask");
    remove->add_flag("-n,--dry-run", all->remove.dry_run, "Say what would change, and change nothing");

    auto *prune = add_command(app, chosen, "prune", "Remove homes and accounts of agents whose people left the policy or this host",
                              [all] { run_prune(all->prune, std::cout); });
    prune->add_flag("-y,--yes", all->prune.yes, "Do not ask");
    prune->add_flag("-n,--dry-run", all->prune.dry_run, "Say what would go, and remove nothing");
    prune->add_option("--gone", all->prune.gone, "A user who left this host, where a directory service cannot tell; may be repeated")
        ->type_name("NAME")
        ->allow_extra_args(false);
    add_json(prune, all->prune.json);
}

// --- about sessions, and what is kept for them: sessions, stop, drain, logs, history, and state with what is below it. Users see and end
// their own.

struct SessionOptions {
    StopOrder stop;
    HistoryQuery history;
    DenialQuery denials;
    std::optional<std::string> user, since, until, project;
    std::string id, whose, directory;
    bool all = false, json = false, yes = false, follow = false;
};

void add_message(CLI::App *command, std::optional<std::string> &message, const char *help)
{
    add_optional(command, "--message", message, help)->type_name("TEXT");
}

void add_stop(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto *stop = add_command(app, chosen, "stop", "End sessions, and wait until they are gone; without root, your own", [all] {
        if (!all->stop.id && !all->stop.user && !all->all)
            throw Failure(ExitStatus::usage,
                          "name a session by its id, or use --user NAME or --all; 'pi-agentctl sessions' lists yours, and with sudo all");
        run_stop(all->stop, std::cout);
    });
    auto *id = add_optional(stop, "SESSION", all->stop.id, "The id of one, or its beginning");
    auto *user = add_user(stop, all->stop.user, "All sessions of this user; without root, of yourself");
    auto *every = stop->add_flag("--all", all->all, "All sessions of everybody; only as root");
    id->excludes(user)->excludes(every);
    user->excludes(every);
    add_message(stop, all->stop.message, "What their users read at the end");
}

void add_drain(CLI::App &app, Action &chosen)
{
    const auto order = std::make_shared<DrainOrder>();
    auto *drain = add_command(app, chosen, "drain", "Let no session start until --off or the next boot; those that run go on",
                              [order] { run_drain(*order, std::cout); });
    drain->add_flag("--off", order->off, "Let sessions start again");
    drain->add_flag("--wait", order->wait, "Wait until no session runs");
    add_message(drain, order->message, "What users read who try to start one");
}

void add_history(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto &query = all->history;
    auto *history =
        add_command(app, chosen, "history", "List past sessions and refusals from the record; without root, your own", [all, &query] {
            if (all->project) query.project = without_trailing_slashes(std::filesystem::absolute(*all->project).lexically_normal());
            if (all->since) query.since = parse_time(*all->since, now_microseconds());
            if (all->until) query.until = parse_time(*all->until, now_microseconds());
            run_history(query, all->json, std::cout, std::cerr);
        });
    add_user(history, query.user, "Only of this user");
    add_optional(history, "--since", all->since, "'2026-03-01 12:00', today, yesterday, 2h (ago)")->type_name("TIME");
    add_optional(history, "--until", all->until, "The same; what began later is left out")->type_name("TIME");
    add_optional(history, "--project", all->project, "Only those that were begun in this directory")->type_name("DIRECTORY");
    history->add_flag("--failed", query.failed, "Only refusals, failures, and sessions that did not end with exit status 0");
    history->add_flag("--probes", query.probes, "With the sessions in which apply and doctor tried the sandbox");
    add_json(history, all->json);
}

void add_denials(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto &query = all->denials;
    auto *denials =
        add_command(app, chosen, "denials",
                    "List connections that a network of hosts denied, and what would allow them; without root, your own", [all, &query] {
                        if (all->since) query.since = parse_time(*all->since, now_microseconds());
                        run_denials(query, all->json, std::cout, std::cerr);
                    });
    add_optional(denials, "SESSION", query.session, "Only of this session: its id, or the beginning of that");
    add_user(denials, query.user, "Only of sessions of this user");
    add_optional(denials, "--since", all->since, "'2026-03-01 12:00', today, yesterday, 2h (ago)")->type_name("TIME");
    denials->add_flag("-f,--follow", query.follow, "Go on with what is denied from now on");
    add_json(denials, all->json);
}

void add_state(CLI::App &app, Action &chosen, const std::shared_ptr<SessionOptions> &all)
{
    auto *state =
        add_command(app, chosen, "state", "Show how large each user's agent home, caches and temporary files are; without root, yours",
                    [all] { run_state(all->user, all->json, std::cout); });
    add_user(state, all->user, "Only of this user");
    add_json(state, all->json);
    state->require_subcommand(0, 1);
    // A command below `state` would forget what is given to `state` itself: "state --user alice prune" prunes everybody's.
    const auto add_below = [&](const char *name, const char *help, const Action &run) {
        return add_command(*state, chosen, name, help, [state, name, run] {
            for (const auto *option : state->get_options())
                if (option->count() > 0)
                    throw Failure(ExitStatus::usage,
                                  fmt::format("write {0} after '{1}': pi-agentctl state {1} {0}", option->get_name(), name));
            run();
        });
    };
    const auto add_whose = [&](CLI::App *command) { command->add_option("--user", all->whose, "Whose")->type_name("NAME")->required(); };

    auto *prune = add_below("prune", "Remove caches of users who have no session now, and what sessions left",
                            [all] { run_state_prune(all->user, all->yes, std::cout); });
    add_user(prune, all->user, "Only of this user");
    prune->add_flag("-y,--yes", all->yes, "Do not ask");

    auto *reset = add_below("reset", "Empty a user's agent home: the next start is like the first",
                            [all] { run_state_reset(all->whose, all->yes, std::cout); });
    add_whose(reset);
    reset->add_flag("-y,--yes", all->yes, "Do not ask");

    auto *moving = add_below("move", "Move the agents' homes to the policy's agent.state_dir, or finish that",
                             [all] { run_state_move(all->yes, std::cout); });
    moving->add_flag("-y,--yes", all->yes, "Do not ask");

    auto *exporting = add_below("export", "Copy the agent's session files of a user into a directory of that user",
                                [all] { run_state_export(all->whose, all->directory, std::cout); });
    add_whose(exporting);
    exporting->add_option("DIRECTORY", all->directory, "A new directory, or an empty one of the user")->required();
}

void add_session_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<SessionOptions>();
    auto *sessions = add_command(app, chosen, "sessions", "List the sessions that live, and what each uses now; without root, your own",
                                 [all] { run_sessions(all->user, all->json, std::cout); });
    add_user(sessions, all->user, "Only those of this user");
    add_json(sessions, all->json);
    add_stop(app, chosen, all);
    add_drain(app, chosen);
    auto *logs = add_command(app, chosen, "logs", "Print the record of a session and the logs of its units",
                             [all] { run_logs(all->id, all->follow, std::cout, std::cerr); });
    logs->add_option("SESSION", all->id, "Its id, or the beginning of that")->required();
    logs->add_flag("-f,--follow", all->follow, "Go on with what is logged until the session ends");
    add_history(app, chosen, all);
    add_denials(app, chosen, all);
    add_state(app, chosen, all);
}

// --- Proposals for the word at the cursor in a command line of pi-agentctl, found by walking the same commands and options that parse it.
// Of values it knows the keys of the policy.

struct Proposal {
    std::string word;
    std::string meaning;
};
using Proposals = std::vector<Proposal>;

// Those of one user with the name that `begun` has: "users.alice.roots".
Proposals keys_of_policy(const std::string &begun)
{
    constexpr std::string_view of_user = "users.*.";
    const std::size_t end = begun.starts_with("users.") ? begun.find('.', of_user.find('*')) : std::string::npos;
    Proposals proposals;
    for (const auto &key : policy_keys()) {
        std::string path(key.path);
        if (end != std::string::npos && path.starts_with(of_user)) path.replace(0, of_user.size() - 1, begun, 0, end);
        if (path.find('*') == std::string::npos) proposals.push_back({path, "key"});
    }
    return proposals;
}

Proposals options_of(const CLI::App &app)
{
    Proposals proposals;
    for (const auto *option : app.get_options())
        for (const auto &name : option->get_lnames())
            proposals.push_back({"--" + name, option->get_description()});
    return proposals;
}

const CLI::App *command_called(const CLI::App &app, const std::string &name)
{
    const auto found = app.get_subcommands([&name](const CLI::App *command) { return command->get_name() == name; });
    return found.empty() ? nullptr : found.front();
}

// Whether its first word is one, by the word that stands for it in the help.
bool takes_key(const CLI::App &app)
{
    const auto all = app.get_options([](const CLI::Option *option) { return option->get_positional(); });
    return !all.empty() && (all.front()->get_name(true) == "KEY" || all.front()->get_name(true) == "WORD");
}

// Where in the tree of commands a command line is.
struct Place {
    const CLI::App *command = nullptr;
    bool awaits_value = false;   // of the option before
    std::size_t positionals = 0; // words that were neither command nor option

    void take(const std::string &word)
    {
        if (word == "=") return; // bash takes --user=alice apart
        if (awaits_value) {
            awaits_value = false;
        } else if (word.size() > 1 && word[0] == '-') {
            const auto *option = command->get_option_no_throw(word);
            awaits_value = option != nullptr && option->get_items_expected_max() > 0;
        } else if (const auto *below = positionals == 0 ? command_called(*command, word) : nullptr; below != nullptr) {
            command = below;
        } else {
            ++positionals;
        }
    }

    [[nodiscard]] Proposals next(const std::string &begun) const
    {
        if (awaits_value) return {}; // the shell has its own completion of paths
        if (begun[0] == '-') return options_of(*command);
        if (positionals > 0) return {};
        Proposals proposals = takes_key(*command) ? keys_of_policy(begun) : Proposals{};
        for (const auto *below : commands_below(*command))
            proposals.push_back({below->get_name(), below->get_description()});
        return proposals;
    }
};

} // namespace

void add_commands(CLI::App &app, Action &chosen)
{
    add_policy_commands(app, chosen);
    add_change_commands(app, chosen);
    add_agent_commands(app, chosen);
    add_session_commands(app, chosen);
    add_diagnosis_commands(app, chosen);
}

std::string complete(const CLI::App &app, std::vector<std::string> words)
{
    std::string begun;
    if (!words.empty()) {
        begun = words.back() == "=" ? std::string() : words.back();
        words.pop_back();
    }
    Place place{&app};
    for (const auto &word : words)
        place.take(word);
    std::string text;
    for (const auto &[word, meaning] : place.next(begun))
        if (word.starts_with(begun)) text += word + '\t' + meaning + '\n';
    return text;
}

} // namespace pi_agent

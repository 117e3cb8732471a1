// The phases of one session.
#include "runner/launch.hpp"

#include "common/access_rules.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/policy_load.hpp"
#include "common/privileged_groups.hpp"
#include "runner/agent_account.hpp"
#include "runner/box_notes.hpp"
#include "runner/config_sync.hpp"
#include "runner/env_files.hpp"
#include "runner/environment.hpp"
#include "runner/git_identity.hpp"
#include "runner/limits.hpp"
#include "runner/migrations.hpp"
#include "runner/own_scope.hpp"
#include "runner/process_state.hpp"
#include "runner/progress.hpp"
#include "runner/project.hpp"
#include "runner/receiver.hpp"
#include "runner/record.hpp"
#include "runner/root_tree.hpp"
#include "runner/seed_defaults.hpp"
#include "runner/session_directory.hpp"
#include "runner/session_terminal.hpp"
#include "runner/session_watch.hpp"
#include "runner/start_slot.hpp"
#include "runner/state_directory.hpp"
#include "runner/supervise.hpp"
#include "runner/systemd_bus.hpp"
#include "runner/systemd_features.hpp"

namespace pi_agent {

namespace {

constexpr int terminal_patience_seconds = 5;

void tell(FdRef wrapper, const RunnerMessage &message)
{
    try {
        send_packet(wrapper, encode(message), {}, in_seconds(1));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: a wrapper that is gone ends the session by itself
    }
}

// In two seconds at most: a wrapper that does not read keeps nobody.
void tell_all(FdRef wrapper, const std::vector<std::string> &notices)
{
    const Deadline deadline = in_seconds(2);
    try {
        for (const auto &text : notices)
            send_packet(wrapper, encode(RunnerMessage(Notice{text})), {}, deadline);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: as above
    }
}

Policy load_enabled_policy()
{
    Policy policy = load_policy(policy_path);
    if (!policy.wrapper.enable)
        throw Failure(ExitStatus::denied, "denied: the administrator has switched the agent off (" + to_string(policy.wrapper.where) +
                                              ", wrapper.enable: false)");
    return policy;
}

AccessRules authorise(const Policy &policy, const Account &caller)
{
    auto found = find_access_rules(policy, caller, policy_path);
    if (const auto *refused = std::get_if<NotAuthorised>(&found)) throw Failure(ExitStatus::denied, refused->text);
    return std::get<AccessRules>(std::move(found));
}

OpenedProject open_allowed_project(Receiver &receiver, const Account &caller, const AccessRules &rules)
{
    auto opened = open_project(receiver.child(), caller, rules);
    if (const auto *refused = std::get_if<Refused>(&opened)) throw Failure(ExitStatus::denied, refused->text);
    auto &project = std::get<OpenedProject>(opened);
    if (project.by_group && is_privileged_group(*project.by_group))
        throw Failure(ExitStatus::configuration,
                      "the root " + project.root_path +
                          " is granted by a group that opens the host (root, sudo, docker, …); grant it by user or by another group");
    if (caller.gid.value() == 0)
        throw Failure(ExitStatus::denied, "denied: your primary group is root's, and the agent's files would carry it");
    return std::move(project);
}

// Removes what the session left, whatever happened; the session's cleanup unit has usually done it already.
class SessionEnd {
public:
    SessionEnd(const AsRoot &root, SystemdBus &systemd, std::string id) : root_(root), systemd_(systemd), id_(std::move(id)) {}
    SessionEnd(const SessionEnd &) = delete;
    SessionEnd &operator=(const SessionEnd &) = delete;
    SessionEnd(SessionEnd &&) = delete;
    SessionEnd &operator=(SessionEnd &&) = delete;
    // From here to unit_has_ended() nothing is taken from under the agent: if it cannot be told to have ended, then this process' end is
    // its end (BindsTo=), and the cleanup unit's turn.
    void unit_may_live() noexcept { unit_may_live_ = true; }
    void unit_has_ended() noexcept { unit_may_live_ = false; }
    ~SessionEnd()
    {
        try {
            if (!unit_may_live_ || !systemd_.unit_exists(service_name(id_))) remove_session(root_, id_);
        } catch (const std::exception &failure) {
            record_problem(id_, failure.what());
        }
    }

private:
    const AsRoot &root_;
    SystemdBus &systemd_;
    std::string id_;
    bool unit_may_live_ = false;
};

// The failure that led here is what counts.
void end_after_failure(SystemdBus &systemd, const std::string &id, SessionEnd &end) noexcept
{
    try {
        if (end_unit(systemd, service_name(id))) end.unit_has_ended();
    } catch (const std::exception &failure) {
        record_problem(id, failure.what());
    }
}

// Sessions whose runner and unit are both gone: after a crash of the host's systemd, or a cleanup that failed.
void sweep(const AsRoot &root, SystemdBus &systemd)
{
    for (const auto &orphan : find_orphans(root)) {
        if (systemd.unit_exists(service_name(orphan)) || systemd.unit_exists(scope_name(orphan)) ||
            systemd.unit_exists(cleanup_name(orphan)))
            continue;
        try { // one user's leftover must not be another's refusal
            remove_session(root, orphan);
            record_problem(orphan, "a session directory without a session was removed");
        } catch (const Failure &failure) {
            if (!defence_is_on("sweep-goes-on")) throw;
            record_problem(orphan, std::string("a session directory without a session cannot be removed: ") + failure.what());
        }
    }
}

void require_room(const AsRoot &root, const Account &caller)
{
    if (count_sessions(root, caller.uid) <= session_limit || !defence_is_on("session-limit")) return;
    throw Failure(ExitStatus::limit, "limit: " + caller.name + " has " + std::to_string(session_limit) +
                                         " sessions, and no user may have more at once; end one, or look for them with: "
                                         "systemctl list-units 'pi-agent-*.service'");
}

// In a session without the lock nothing is mounted over the settings: there the agent could move or remove what holds them, and with it the
// lock of every other session.
void require_locked_sessions(const AsRoot &root, const Account &caller, const std::string &id)
{
    if (!has_unlocked_session(root, caller.uid, id) || !defence_is_on("locked-sessions")) return;
    throw Failure(ExitStatus::limit, "limit: the policy locks settings.json (settings_lock), and a session of " + caller.name +
                                         " is from before that; end it, then try again");
}

// The agent's end of the session's pty, where the request wants one; the other end is the wrapper's, which sets it up while systemd builds
// the unit.
UniqueFd give_terminal(const AsRoot &root, const RootTree &tree, const Account &agent, const Request &request, FdRef wrapper)
{
    if (!has_any(request.on_terminal)) return UniqueFd();
    SessionTerminal terminal = open_session_terminal(root, tree.devpts, agent, request.window);
    send_packet(wrapper, encode(RunnerMessage(TerminalOpened{})), {terminal.master.get()}, in_seconds(terminal_patience_seconds));
    return std::move(terminal.slave);
}

UnitPlan plan_unit(const std::string &id, const Account &caller, const Account &agent, const OpenedProject &project,
                   const StateDirectory &state, const RootTree &tree, const SystemdFeatures &features)
{
    UnitPlan plan{id, caller.uid, agent.uid, agent.gid, {}, tree.path, tree.binds, state.home_path, project.root_path, features};
    if (project.by_group) plan.groups.push_back(*project.by_group);
    return plan;
}

LaunchRecord plan_launch(const Policy &policy, const EnvironmentInput &environment, Request request, const OpenedProject &project)
{
    LaunchRecord record;
    record.binary = policy.agent.binary;
    record.arguments = {policy.agent.binary_name};
    record.arguments.insert(record.arguments.end(), request.arguments.begin(), request.arguments.end());
    record.environment = compose_environment(environment);
    record.project = project.root_path;
    record.below = project.below;
    record.cwd_inode = project.cwd_inode;
    record.umask = request.umask;
    record.on_terminal = request.on_terminal;
    return record;
}

void prepare_and_run(const AsRoot &root, const Account &caller, FdRef wrapper)
{
    require_host_namespaces(root);

    // Out of the caller's control group before anything that others share. While systemd moves this process, only what concerns the process
    // itself, or asks systemd: until it is inside, the caller can freeze or kill it.
    const std::string id = make_session_id();
    UniqueFd slot = take_start_slot(root, caller.uid);
    SystemdBus systemd(root);
    reset_process_state(root);
    const UniqueFd termination = watch_termination(); // a signal that killed this process while it is moved would leave the scope behind
    MoveIntoScope move(systemd, scope_name(id), caller.uid);
    systemd.watch_service(service_name(id));
    const SystemdFeatures features = systemd_features(systemd.version());
    move.wait();
    // --- from here the caller can neither freeze nor kill this process ---

    // Decide again; only this decision counts.
    const Policy policy = load_enabled_policy();
    const AccessRules rules = authorise(policy, caller);
    const Account agent = find_agent(policy, rules, caller);
    EnvironmentInput environment{
        {}, {}, policy.env, read_managed_env_files(policy.env_files), rules.env, {}, agent.name, policy.agent.binary, id};
    Receiver receiver(root, caller, rules, wrapper);
    Request request = receiver.request();
    const OpenedProject project = open_allowed_project(receiver, caller, rules);

    // Prepare what systemd needs.
    const SessionDirectory session = SessionDirectory::create(root, id, caller.uid);
    SessionEnd end(root, systemd, id);
    sweep(root, systemd);
    require_room(root, caller);
    slot.reset(); // from here it is a session, and counted as one
    Progress progress(wrapper);
    EarlyMessages early(receiver);
    const SessionWatch watch{wrapper, termination, receiver.channel(), [&] { early.hear(); }};
    StateDirectory state = open_state_directory(root, policy.agent.state_dir, caller.name, agent, [&] {
        watch.check();
        progress.show("waiting for another start of your agent");
    });
    const UniqueFd locked_settings = policy.settings_lock ? session.make_file("settings.json") : UniqueFd();
    if (locked_settings) require_locked_sessions(root, caller, id);
    // As user and agent, under the user's lock.
    const UniqueFd defaults = open_defaults(root);
    const auto show = [&](const std::string &doing) { progress.show(doing); };
    migrate_home(root, agent, state, {watch, [&](const std::string &notice) { tell_all(wrapper, {notice}); }, show});
    const auto bring_config_in = [&] {
        SyncPlan plan = plan_sync(policy, rules, caller, managed_environment(environment));
        plan.defaults = defaults;
        const std::vector<std::string> notices = sync_config(root, caller, agent, plan, state, locked_settings, watch, show);
        state.lock.reset();
        tell_all(wrapper, notices);
        HostVariables variables = ask_host_env_files(root, caller, policy.host_env_files); // often of the same directory: it had its say
        environment.host_files = std::move(variables.assignments);
        tell_all(wrapper, variables.notices);
    };
    if (locked_settings) bring_config_in(); // they are mounted over the agent's, which must be there
    const RootTree tree = build_root_tree(root, session, project, state, caller, agent, locked_settings);
    if (policy.box_notes) show_box_notes(session, {project.root_path, state.home_path, agent.name, tree.covered, policy.settings_lock});
    // Launch. While systemd builds the unit, the user's config is brought into the agent's home: what systemd starts waits for the launch
    // record and looks at nothing before.
    GitIdentityReader git_identity(root, caller, project, policy.git_identity);
    auto [control, launcher] = make_channel();
    end.unit_may_live();
    systemd.start_service(service_name(id), service_properties(plan_unit(id, caller, agent, project, state, tree, features)),
                          CompanionUnit{cleanup_name(id), cleanup_properties(id, caller.uid)}, launcher);
    launcher.reset();
    try {
        if (!locked_settings) bring_config_in();
        tell_all(wrapper, git_identity.show(session, watch));
    } catch (...) {
        end_after_failure(systemd, id, end);
        throw;
    }

    // Supervise.
    tell_all(wrapper, name_hidden(tree, project.root_path));
    UniqueFd terminal = give_terminal(root, tree, agent, request, wrapper);
    environment.presentation = std::move(request.presentation);
    environment.home = state.home_path;
    LaunchRecord record = plan_launch(policy, environment, std::move(request), project);
    git_identity.name_in(record.environment);
    record_started(id, caller, agent, project.root_path);
    const AgentEnded ended = supervise(
        systemd, Session{service_name(id), wrapper, receiver, control, termination, record, early.messages()}, std::move(terminal));
    end.unit_has_ended();
    record_ended(id, ended);
    session.unlock();
    tell(wrapper, ended); // nobody waits for the removal
}

} // namespace

void run_session(const AsRoot &root, const Account &caller, FdRef wrapper)
{
    try {
        prepare_and_run(root, caller, wrapper);
    } catch (const EndedBySignal &asked) {
        record_refused(caller.name, "ended by a signal before the agent was started");
        tell(wrapper, AgentEnded{true, asked.number});
    }
}

} // namespace pi_agent

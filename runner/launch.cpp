// The phases of one session.
#include "runner/launch.hpp"

#include "common/access_rules.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/policy_load.hpp"
#include "common/privileged_groups.hpp"
#include "runner/config_sync.hpp"
#include "runner/environment.hpp"
#include "runner/process_state.hpp"
#include "runner/project.hpp"
#include "runner/record.hpp"
#include "runner/root_tree.hpp"
#include "runner/session_directory.hpp"
#include "runner/session_terminal.hpp"
#include "runner/state_directory.hpp"
#include "runner/stdio_rules.hpp"
#include "runner/supervise.hpp"
#include "runner/systemd_bus.hpp"

#include <algorithm>
#include <fcntl.h>

namespace pi_agent {

namespace {

constexpr int request_patience_seconds = 5;
constexpr int scope_patience_seconds = 30;

void notify(FdRef wrapper, const std::string &text)
{
    try {
        send_packet(wrapper, encode(RunnerMessage(Notice{text})), {}, in_seconds(1));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: a wrapper that is gone ends the session by itself
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

// The account that the agent runs as: never root's, never the caller's own.
Account find_agent(const AccessRules &rules, const Account &caller)
{
    const std::optional<Account> agent = find_account(rules.agent_account);
    if (!agent)
        throw Failure(ExitStatus::configuration, "the agent's account " + rules.agent_account + " (" + to_string(rules.where) +
                                                     ") does not exist; the administrator runs: pi-agentctl apply");
    if (agent->uid.value() == 0 || agent->uid == caller.uid || agent->gid.value() == 0)
        throw Failure(ExitStatus::configuration, "the agent's account " + rules.agent_account + " (" + to_string(rules.where) +
                                                     ") must be neither root's nor the caller's own");
    for (const gid_t group : agent->groups)
        if (is_privileged_group(Gid(group)))
            throw Failure(ExitStatus::configuration, "the agent's account " + rules.agent_account + " is in the group " +
                                                         group_name(Gid(group)).value_or(std::to_string(group)) +
                                                         ", which opens the host to it; the administrator removes it: gpasswd -d " +
                                                         rules.agent_account + " GROUP");
    return *agent;
}

OpenedProject open_allowed_project(const AsRoot &root, const Account &caller, const AccessRules &rules, FdRef cwd)
{
    auto opened = open_project(root, caller, rules, cwd);
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

// Removes what the session left, whatever happened; the unit's own ExecStopPost= has usually done it already.
class SessionEnd {
public:
    SessionEnd(const AsRoot &root, std::string id) : root_(root), id_(std::move(id)) {}
    SessionEnd(const SessionEnd &) = delete;
    SessionEnd &operator=(const SessionEnd &) = delete;
    SessionEnd(SessionEnd &&) = delete;
    SessionEnd &operator=(SessionEnd &&) = delete;
    ~SessionEnd()
    {
        try {
            remove_session(root_, id_);
        } catch (const std::exception &failure) {
            record_problem(id_, failure.what());
        }
    }

private:
    const AsRoot &root_;
    std::string id_;
};

// Sessions whose runner and unit are both gone: after a crash of the host's systemd, or a cleanup that failed.
void sweep(const AsRoot &root, SystemdBus &systemd)
{
    for (const auto &orphan : find_orphans(root)) {
        if (systemd.unit_exists(service_name(orphan)) || systemd.unit_exists(scope_name(orphan))) continue;
        remove_session(root, orphan);
        record_problem(orphan, "a session directory without a session was removed");
    }
}

// Fills the descriptors that are on the user's terminal with the slave of the session's pty.
bool give_terminal(const AsRoot &root, const RootTree &tree, const Account &agent, ReceivedRequest &received, FdRef wrapper)
{
    const auto &wanted = received.request.on_terminal;
    if (std::none_of(wanted.begin(), wanted.end(), [](bool on_terminal) { return on_terminal; })) return false;
    const SessionTerminal terminal = open_session_terminal(root, tree.devpts, agent, received.request.window);
    for (std::size_t index = 0; index < wanted.size(); ++index) {
        if (!wanted[index]) continue;
        received.stdio[index] = UniqueFd::adopt(fcntl(terminal.slave.get(), F_DUPFD_CLOEXEC, 3));
        if (!received.stdio[index]) throw_errno("copying the session's terminal");
    }
    send_packet(wrapper, encode(RunnerMessage(TerminalOpened{})), {terminal.master.get()}, in_seconds(request_patience_seconds));
    return true;
}

UnitPlan plan_unit(const std::string &id, const Account &caller, const Account &agent, const OpenedProject &project,
                   const StateDirectory &state, const RootTree &tree)
{
    UnitPlan plan{id, caller.uid, agent.uid, agent.gid, {}, tree.path, tree.binds, state.home_path, project.root_path};
    if (project.by_group) plan.groups.push_back(*project.by_group);
    return plan;
}

LaunchRecord plan_launch(const std::string &id, const Policy &policy, const AccessRules &rules, const Account &agent, Request request,
                         const OpenedProject &project, const StateDirectory &state)
{
    LaunchRecord record;
    record.binary = policy.agent.binary;
    record.arguments = {policy.agent.binary_name};
    record.arguments.insert(record.arguments.end(), request.arguments.begin(), request.arguments.end());
    record.environment =
        compose_environment({std::move(request.presentation), policy.env, rules.env, state.home_path, agent.name, policy.agent.binary, id});
    record.project = project.root_path;
    record.below = project.below;
    record.cwd_inode = project.cwd_inode;
    record.umask = request.umask;
    return record;
}

} // namespace

AgentEnded run_session(const AsRoot &root, const Account &caller, FdRef wrapper)
{
    require_host_namespaces(root);

    // Out of the caller's control group before anything else: from here the caller can neither freeze nor kill this process.
    const std::string id = make_session_id();
    SystemdBus systemd(root);
    if (defence_is_on("own-scope"))
        systemd.enter_scope(scope_name(id), scope_properties(caller.uid), slice_chain(caller.uid), in_seconds(scope_patience_seconds));
    reset_process_state(root);
    const UniqueFd termination = watch_termination();

    // Decide again; only this decision counts.
    ReceivedRequest received = receive_request(wrapper, in_seconds(request_patience_seconds));
    check_stdio(received.stdio);
    const Policy policy = load_enabled_policy();
    const AccessRules rules = authorise(policy, caller);
    const Account agent = find_agent(rules, caller);
    const OpenedProject project = open_allowed_project(root, caller, rules, received.cwd);

    // Prepare: the agent's state as the agent, the user's config as the user, under the user's lock.
    const SessionDirectory session = SessionDirectory::create(root, id);
    const SessionEnd end(root, id);
    sweep(root, systemd);
    StateDirectory state = open_state_directory(root, policy.agent.state_dir, caller.name, agent);
    for (const auto &skipped : sync_config(root, caller, agent, rules.config_directory, state.home, policy.settings))
        notify(wrapper, skipped);
    state.lock.reset();
    const RootTree tree = build_root_tree(root, session, project, state, caller, agent);
    for (const auto &path : tree.covered)
        notify(wrapper, "not shown to the agent: " + project.root_path + "/" + escape_for_display(path) +
                            " (another file system mounted inside the root)");

    // The terminal: its master goes to the wrapper, which sets it up while systemd builds the unit.
    const bool has_terminal = give_terminal(root, tree, agent, received, wrapper);

    // Launch and supervise.
    auto [control, launcher] = make_channel();
    systemd.start_service(service_name(id), service_properties(plan_unit(id, caller, agent, project, state, tree)), launcher);
    launcher.reset();
    LaunchRecord record = plan_launch(id, policy, rules, agent, std::move(received.request), project, state);
    record.has_terminal = has_terminal;
    record_started(id, caller, agent, project.root_path);
    const AgentEnded ended =
        supervise(systemd, Session{service_name(id), wrapper, control, termination, record, std::move(received.stdio)});
    record_ended(id, ended);
    return ended;
}

} // namespace pi_agent

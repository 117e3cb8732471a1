// The phases of one session. Each takes what those before it are, and nothing else makes it; what they hold ends backwards.
#include "runner/root/launch/phases.hpp"

namespace pi_agent {

namespace {

// Root gives up what it does not need to the end, the agent starts, and runs.
AgentEnded run_agent(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched, Presented &presented,
                     PlaceholderRemoval &placeholders, LimitEvents &reached)
{
    Sandbox &sandbox = *entered.sandbox;
    const auto hand_over = [&](FdRef pty) {
        entered.to_wrapper.tell(SessionBegun{entered.id});
        hand_record_over(entered.root, heard.policy, presented.environment, presented.launch, launched.control, pty,
                         presented.modes ? presented.modes->channel() : FdRef(-1));
    };
    std::optional<GateWatch> gate;
    if (launched.gate)
        gate.emplace(entered.id, launched.gate->channel(), launched.gate->said(), entered.record, std::move(launched.denials),
                     denial_places(heard.policy.network, routed_providers(heard.policy)), [&asked = *launched.gate] { asked.kill(); });
    const auto before_agent = [&] {
        sandbox.require_enforced(heard.policy);
        if (launched.gate) open_gate(entered, heard, *launched.gate);
        if (!view.tree.late.empty()) attach_late(entered.root, sandbox.namespace_of_launcher("mnt"), view.tree.late);
        if (heard.guards.has_inner()) heard.guards.apply_inside(entered.root, sandbox.namespace_of_launcher("mnt"), session.project_path);
        confine_root(entered.root);
        // --- confined root from here: what is left is to watch, to end and to remove ---
        if (gate) gate->expect_life();
    };
    const auto after_agent = [&] {
        entered.record.take_usage(sandbox.usage());
        reached = sandbox.limit_events();
    };
    return session.ending.run_recorded([&] {
        const Session watched{entered.wrapper,
                              entered.to_wrapper,
                              heard.receiver,
                              launched.control,
                              entered.termination,
                              FdRef(defence_is_on("job-end") ? heard.job.get() : -1),
                              hand_over,
                              session.early.messages(),
                              before_agent,
                              after_agent,
                              [&] { placeholders.begin(); },
                              gate ? &*gate : nullptr};
        entered.begin("waiting for " + sandbox.facts().name);
        const AgentEnded seen = supervise(sandbox, watched, std::move(presented.terminal));
        session.ending.sandbox_has_ended();
        const std::string denied = gate ? gate->finish() : "";
        if (!denied.empty() && heard.request.program != Program::canary) entered.tell({denied}); // that one asks to be denied
        release_scratch(view.scratch);
        return seen;
    });
}

// The session counts as a start until everything that it left is gone.
void become_a_start(Entered &entered, const OpenedSession &session)
{
    try {
        entered.slot = take_start_slot(entered.root, entered.caller.uid);
        session.directory.unlock();
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): all slots taken: it still counts as a session until then
    }
}

void finish(Entered &entered, const Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched, const AgentEnded &ended,
            PlaceholderRemoval &placeholders, const LimitEvents &reached)
{
    become_a_start(entered, session);
    for (const auto &notice : {nearly_full(session.state.home, session.state.home_path), nearly_full(view.scratch, "the session's /tmp")})
        if (notice) entered.tell({*notice});
    entered.tell(limit_notices(heard.policy.limits, reached, ended, entered.sandbox->result().result, Clock::now() - launched.begun));
    // Restore the user's repository before the user hears of the end: git stops where a commondir disappears while it looks.
    release_project(entered.root, view.tree);
    placeholders.finish(in_seconds(1));
    entered.to_wrapper.tell(ended);                               // nobody waits for the removal of the rest
    if (!session.ending.was_asked()) launched.leftovers.finish(); // otherwise the administrator waits for the end of all of it
}

// --- Who asks, under which policy, in which control group, and for what. Then makes the session, brings the home in line, and builds the
// view by descriptor.

std::string name_session(const AsRoot &root, SessionRecord &record)
{
    require_host_namespaces(root);
    std::string id = make_session_id();
    record.names(id);
    return id;
}

Policy read_policy(const AsRoot &root, const Account &caller, SessionRecord &record)
{
    Policy policy = load_enabled_policy(caller);
    record.runs_in(policy.sandbox.method);
    require_not_drained(root, caller, std::nullopt);
    return policy;
}

// Blocks signals first: one that killed this process while systemd moves it would leave a scope behind.
UniqueFd reset_process(const AsRoot &root)
{
    reset_process_state(root);
    return watch_termination();
}

Admission leave_callers_group(Entered &entered)
{
    std::optional<Admission> admission;
    entered.begin(has_unit(entered.policy.sandbox.method) ? "waiting for systemd, which gives the runner a scope"
                                                          : "waiting for a control group");
    entered.sandbox->leave_callers_group([&] { admission.emplace(admit(entered.policy, entered.caller)); });
    // --- from here the caller can neither freeze nor kill this process ---
    require_limit_controllers(entered.root, entered.policy.limits);
    return std::move(*admission);
}

Request hear_request(Receiver &receiver, SessionRecord &record)
{
    Request request = receiver.request();
    record.runs(request.program);
    return request;
}

// With the policy of the session: what the project's root says, and what the start gives up, is part of it.
OpenedProject hear_project(Receiver &receiver, Entered &entered, const Request &request)
{
    OpenedProject project = open_allowed_project(receiver.child(), entered.caller, entered.admission, entered.policy, asked_by(request));
    if (routed_providers(project.policy).empty() && !defence_is_on("keys-without-route")) project.policy.providers.clear();
    entered.record.adds(request.allow);
    entered.record.works_in(project.directory(), project.repository_path());
    return project;
}

// Nothing in it needs more protection where all of it is read-only.
ProjectsPolicy guarded(ProjectsPolicy projects)
{
    if (projects.read_only && defence_is_on("read-only-projects")) projects.protect.emplace();
    return projects;
}

// The caller makes that directory in the project, so it belongs to the agent only where owners are mapped, and is writable only where the
// project is.
std::string make_tmpdir(const Entered &entered, const OpenedProject &project, const Request &request)
{
    if (!request.tmpdir.empty() && project.policy.projects.ownership == ProjectOwnership::none)
        throw Failure(FailureKind::tmpdir, "--pi-agent-tmpdir makes a directory of yours, which the agent cannot use here: the policy says "
                                           "projects.ownership: none; leave the option out, and the session has a directory of its own");
    if (!request.tmpdir.empty() && project.policy.projects.read_only)
        throw Failure(FailureKind::tmpdir,
                      "denied: the project is read-only in this session, and a temporary directory in it would be, too; "
                      "start without --pi-agent-tmpdir");
    return ask_user_tmpdir(entered.root, entered.caller, project, request);
}

// Takes out the notices that are shown only once, without their marks.
std::vector<std::string> take_told_once(std::vector<std::string> &notices)
{
    std::vector<std::string> once;
    std::erase_if(notices, [&](const std::string &notice) {
        const bool is_marked = notice.starts_with(answer_told_once);
        if (is_marked) once.push_back(notice.substr(answer_told_once.size()));
        return is_marked;
    });
    return once;
}

StateDirectory open_state(Entered &entered, const Heard &heard, OpenedSession &session)
{
    require_not_drained(entered.root, entered.caller, heard.request.program);
    require_same_conditions(entered.stamp, entered.caller, entered.admission.agent);
    sweep(entered.root, *entered.sandbox);
    require_room(entered.root, entered.caller, heard.policy.limits);
    entered.slot.reset(); // from now on it counts as a session
    if (heard.policy.projects.undo.on) attempt_recorded(entered.id, [&] { make_undo_directory(entered.caller); });
    return open_state_directory(entered.root, heard.policy.agent.state_dir, short_name(entered.caller), entered.admission.agent, [&] {
        session.waited = true;
        session.watch.check();
        entered.show("waiting for another start of your agent");
    });
}

HeldDisk hold_disk(Entered &entered, const Heard &heard, const OpenedSession &session)
{
    const DiskHolder holder{entered.caller, entered.worker, heard.policy, entered.id, session.watch, entered.shower()};
    HeldDisk held = hold_to_disk_limit(entered.root, holder, session.state);
    if (held.quota) session.directory.make_link(held_link, std::to_string(held.quota->project));
    const auto &said = heard.policy.limits.disk;
    std::vector<std::string> idle;
    if (!held.problem.empty())
        idle.push_back("limits.disk: " + said->text + " (" + to_string(said->where) + ") is not enforced: " + held.problem);
    entered.tell(untold(session.state, "told-disk", idle, heard.request.debug));
    if (!held.notice.empty()) entered.tell({held.notice});
    return held;
}

EnvironmentInput environment_of(const Entered &entered, const Heard &heard, const OpenedSession &session)
{
    const Policy &policy = entered.policy;
    EnvironmentInput environment{{},
                                 {},
                                 policy.env,
                                 entered.env_names,
                                 entered.admission.rules.env,
                                 session.state.home_path,
                                 entered.admission.agent.name,
                                 policy.agent.binary,
                                 entered.id};
    environment.path = heard.policy.path;
    hold_outside(environment, heard.policy);
    if (heard.has_gate()) environment.gate.merge(gate_environment(names_inside(heard.policy.network)));
    if (!heard.tmpdir.empty()) environment.tmpdir = session.project_path + "/" + heard.tmpdir;
    return environment;
}

// Where the settings are locked, or others wait for the lock. It is released with that, so by then others must see that this session is
// prepared (has_session_without).
std::optional<Synced> sync_first(Entered &entered, Heard &heard, OpenedSession &session)
{
    if (!session.locked_settings && !session.locked_mcp && !session.waited) return std::nullopt;
    session.directory.make_directory("home");
    return bring_config_in(entered, heard, session);
}

RootTree build_tree(Entered &entered, Heard &heard, OpenedSession &session)
{
    const ProjectsPolicy &projects = heard.policy.projects;
    if (projects.paths == ProjectPaths::alias)
        ask<Done>(entered.root, {"maker of the project's place", entered.worker, {session.state.home.get()}}, [&](const AsUser &self) {
            fault_point("making-place");
            make_alias_directory(self, session.state.home, alias_of(heard.project.shown.path()));
            return Done{};
        });
    heard.guards.wait_for_search([&] {
        session.watch.check();
        entered.show("looking for what is protected and masked in the project");
    });
    return build_root_tree(entered.root, session.directory, entered.admission.view, heard.project, projects, session.state, entered.caller,
                           entered.admission.agent, session.locked_settings, session.locked_mcp, heard.guards);
}

// Beside the groups of the agent's account: those that granted the roots, and those that open devices and shared data. Each once.
std::vector<Gid> groups_beside(const OpenedProject &project, const ShownDevices &devices, const std::vector<Gid> &of_data)
{
    std::vector<Gid> groups;
    const auto add = [&](Gid group) {
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    };
    for (const ShownTree *shown : project.trees())
        if (shown->by_group) add(*shown->by_group);
    std::for_each(devices.groups.begin(), devices.groups.end(), add);
    std::for_each(of_data.begin(), of_data.end(), add);
    return groups;
}

} // namespace

std::vector<std::string> names_inside(const NetworkPolicy &network)
{
    constexpr std::size_t hosts_limit = 16UL * 1024 * 1024;
    std::vector<std::string> names{host_name()};
    try {
        for (auto &name : names_of_loopback(read_trusted_file("/etc/hosts", hosts_limit, "host's names")))
            names.push_back(std::move(name));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): without that file, or with one of somebody else's, these names are unknown
    }
    std::erase_if(names, [&](const std::string &name) {
        const HostMatch found = find_rule(network.hosts, HostRule{name});
        return found.rule != nullptr || found.other_port != nullptr;
    });
    return names;
}

void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    try {
        Entered entered(root, caller, wrapper, record);
        entered.begin("hearing what is asked for");
        Heard heard(entered);
        entered.begin("opening the agent's home and state");
        OpenedSession session(entered, heard);
        entered.begin("building what the session sees");
        std::unique_ptr<SessionGate> gate = ask_for_gate(entered, heard, session);
        BuiltView view(entered, heard, session);
        Launched launched(entered, heard, session, view, std::move(gate));
        Presented presented(entered, heard, session, view, launched);
        PlaceholderRemoval placeholders(root, entered.id, session.directory.fd());
        LimitEvents reached;
        const AgentEnded ended = run_agent(entered, heard, session, view, launched, presented, placeholders, reached);
        finish(entered, heard, session, view, launched, ended, placeholders, reached);
    } catch (const EndedBySignal &asked) {
        record.failed(ExitStatus::system_failure, "ended by a signal before the agent was started");
        ToWrapper(wrapper).tell(AgentEnded{true, asked.number});
    }
}

void Entered::show(const std::string &doing)
{
    if (doing.empty() || Clock::now() < next_shown) return;
    next_shown = Clock::now() + std::chrono::milliseconds(100);
    to_wrapper.tell_at_once(Preparing{doing});
}

Entered::Entered(const AsRoot &as_root, const Account &asking, FdRef wrappers_socket, SessionRecord &recorded)
    : root(as_root), caller(asking), wrapper(wrappers_socket), record(recorded), id(name_session(root, record)), to_wrapper(wrapper),
      slot(wait_for_start_slot(root, caller.uid, [&] { show("waiting for other starts of yours"); })), stamp(stamp_start(caller)),
      policy(read_policy(root, caller, record)), sandbox(make_sandbox(root, policy.sandbox, id, caller.uid)),
      termination(reset_process(root)), admission(leave_callers_group(*this)), worker(without_other_groups(admission.agent)),
      env_names(ask_env_names(root, policy.env_files))
{
}

Heard::Heard(Entered &entered)
    : receiver(entered.root, entered.caller, entered.admission.rules, entered.policy.toolchains, entered.wrapper),
      request(hear_request(receiver, entered.record)), job(require_in_job(entered.root, entered.caller, entered.policy, request.program)),
      project(hear_project(receiver, entered, request)), policy(project.policy),
      home(receive_home([&] { return receiver.child().receive(); })),
      guards(entered.root, entered.caller, project, guarded(policy.projects)),
      agents(places_of_state(policy, entered.admission.rules, project.roots)), tmpdir(make_tmpdir(entered, project, request))
{
}

OpenedSession::OpenedSession(Entered &entered, Heard &heard)
    : directory(SessionDirectory::create(entered.root, entered.id, entered.caller.uid)),
      ending(entered.root, *entered.sandbox, entered.id, directory, entered.record, entered.teller()),
      early(heard.receiver), watch{entered.wrapper, entered.termination, heard.receiver.channel(), [this] { early.hear(); }},
      state(open_state(entered, heard, *this)), disk(hold_disk(entered, heard, *this)),
      project_path(place_of_project(heard.project.shown, heard.policy.projects.paths, state.home_path)),
      locked_settings(heard.policy.settings_lock ? directory.make_file("settings.json") : UniqueFd()),
      locked_mcp(heard.policy.mcp_lock ? directory.make_file("mcp.json") : UniqueFd()), defaults(open_defaults(entered.root)),
      placeholders(ask_placeholders(entered.root, heard.policy.providers)), environment(environment_of(entered, heard, *this))
{
    if (locked_settings) require_locked_sessions(entered.root, entered.caller, entered.id, "settings.json", "settings_lock");
    if (locked_mcp) {
        const auto &documents = heard.policy.documents;
        require_locked_sessions(entered.root, entered.caller, entered.id, "mcp.json", "mcp_lock");
        write_whole(locked_mcp, documents.contains("mcp.json") ? documents.at("mcp.json") : "{}", "the policy's mcp.json");
    }
    migrate_home(entered.root, entered.worker, state, {watch, entered.teller(), entered.shower()});
}

Synced bring_config_in(Entered &entered, Heard &heard, OpenedSession &session)
{
    const Policy &policy = heard.policy;
    SyncPlan plan = plan_sync(policy, entered.admission.rules, entered.caller, managed_environment(session.environment), heard.agents,
                              session.placeholders);
    plan.writing.defaults = session.defaults;
    plan_sessions(plan, heard.project.directory(), heard.request.sessions);
    if (policy.projects.paths == ProjectPaths::host) plan.writing.project_alias = alias_of(session.project_path);
    plan.writing.project_path = session.project_path;
    const ShownPlaces shown{entered.admission.view, session.project_path, session.state.home_path};
    plan.writing.is_there = plan.reading.places.is_there = [&](const std::string &path) { return is_there_inside(shown, path); };
    plan.reading.places.project = heard.project.shown.path();
    plan.reading.places.directory = heard.project.directory();
    std::vector<std::string> notices = sync_config(entered.root, entered.caller, entered.worker, plan, session.state,
                                                   session.locked_settings, session.watch, entered.shower());
    session.state.lock.reset();
    const std::vector<std::string> once = take_told_once(notices);
    entered.tell(notices);
    for (const auto &notice : once)
        entered.tell(untold_of(session.state, "told-config", heard.project.directory(), {notice}, heard.request.debug));
    // Often in the same directory.
    HostVariables variables = ask_host_env_files(entered.root, entered.caller, policy.host_env_files, heard.agents);
    entered.tell(untold(session.state, "told-variables", variables.notices, heard.request.debug));
    return Synced(std::move(variables.assignments));
}

BuiltView::BuiltView(Entered &entered, Heard &heard, OpenedSession &session)
    : synced(sync_first(entered, heard, session)),
      scratch(make_scratch(entered.root, session.directory, heard.policy.scratch, heard.policy.agent.state_dir, entered.id,
                           entered.admission.agent, session.disk.quota)),
      tree(build_tree(entered, heard, session)), devices(find_devices(entered.root, heard.policy.devices)),
      home_mounts(entered.root, session.directory, entered.admission.view, std::move(heard.home), entered.caller.home, heard.policy, tree),
      further_groups(groups_beside(heard.project, devices, home_mounts.groups(entered.caller)))
{
}

} // namespace pi_agent

// The phases of one session.
#include "runner/root/launch/launch.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/host/process_namespace.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_agent/project_alias.hpp"
#include "runner/as_agent/seed_defaults.hpp"
#include "runner/plan/canary_plan.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/plan/limit_notices.hpp"
#include "runner/plan/search_tools.hpp"
#include "runner/root/confined/placeholder_removal.hpp"
#include "runner/root/confined/recorded_run.hpp"
#include "runner/root/confined/root_confinement.hpp"
#include "runner/root/confined/scratch_removal.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/confined/supervise.hpp"
#include "runner/root/door/admission.hpp"
#include "runner/root/door/agent_account.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/door/progress.hpp"
#include "runner/root/door/start_slot.hpp"
#include "runner/root/errand/certificate_files.hpp"
#include "runner/root/errand/config_sync.hpp"
#include "runner/root/errand/env_files.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/errand/git_identity.hpp"
#include "runner/root/errand/host_files.hpp"
#include "runner/root/errand/migrations.hpp"
#include "runner/root/errand/record_handover.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/errand/ssh_files.hpp"
#include "runner/root/errand/user_tmpdir.hpp"
#include "runner/root/kernel/direct_binary.hpp"
#include "runner/root/kernel/installed_tools.hpp"
#include "runner/root/kernel/limit_controllers.hpp"
#include "runner/root/method/sandbox_methods.hpp"
#include "runner/root/session/scratch.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/state_directory.hpp"
#include "runner/root/session/to_wrapper.hpp"
#include "runner/root/session/told_once.hpp"
#include "runner/root/view/home_mounts.hpp"
#include "runner/root/view/own_files.hpp"
#include "runner/root/view/root_tree.hpp"
#include "runner/root/view/session_terminal.hpp"

namespace pi_agent {

namespace {

SandboxPlan plan_sandbox(const std::string &id, const Account &caller, const Account &agent, const OpenedProject &project,
                         const StateDirectory &state, const RootTree &tree, const Policy &policy)
{
    SandboxPlan plan{id,         caller.uid,      agent.uid,           agent.gid,      {},           agent.groups, tree.path,
                     tree.binds, state.home_path, tree.writable_roots, policy.network, policy.limits};
    if (project.shown.by_group) plan.groups.push_back(*project.shown.by_group);
    for (const auto &other : project.git_directories)
        if (other.by_group && other.by_group != project.shown.by_group) plan.groups.push_back(*other.by_group);
    plan.late_files = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}; // of those, docker would put its own there
    if (policy.box_notes) plan.late_files.emplace_back("/AGENTS.md");
    return plan;
}

LaunchRecord plan_launch(const Policy &policy, const EnvironmentInput &environment, Request request, const OpenedProject &project,
                         const std::string &project_path)
{
    LaunchRecord record;
    switch (request.program) {
    case Program::agent:
        record.binary = policy.agent.binary;
        record.arguments = {policy.agent.binary_name};
        break;
    case Program::shell:
        record.binary = build::shell_path;
        record.arguments = {"bash"};
        break;
    case Program::canary:
        record.binary = build::canary_path;
        record.arguments = {"pi-agent-canary"};
        break;
    }
    record.arguments.insert(record.arguments.end(), request.arguments.begin(), request.arguments.end());
    record.environment = compose_environment(environment);
    record.project = project_path;
    record.below = project.below;
    record.cwd_inode = project.cwd_inode;
    record.umask = request.umask & 077U; // one that takes its owner's rights would shut the agent out of what it makes
    record.on_terminal = request.on_terminal;
    return record;
}

void prepare_and_run(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    require_host_namespaces(root);

    // Out of the caller's control group before anything that others share. Until then only what concerns the process itself, asks systemd,
    // or is read from root's own files: the caller can freeze or kill it.
    const std::string id = make_session_id();
    record.names(id);
    Progress progress(wrapper);
    ToWrapper to_wrapper(wrapper);
    UniqueFd slot = wait_for_start_slot(root, caller.uid, [&] { progress.show("waiting for other starts of yours"); });
    const StartStamp stamp = stamp_start(caller);
    const Policy policy = load_enabled_policy(caller);
    record.runs_in(policy.sandbox.method);
    const std::unique_ptr<Sandbox> sandbox = make_sandbox(root, policy.sandbox, id, caller.uid);
    reset_process_state(root);
    const UniqueFd termination = watch_termination(); // a signal that killed this process while it is moved would leave a scope behind
    std::optional<Admission> admission;
    sandbox->leave_callers_group([&] { admission.emplace(admit(policy, caller)); });
    // --- from here the caller can neither freeze nor kill this process ---

    const AccessRules &rules = admission->rules;
    const Account &agent = admission->agent;
    const HostView &view = admission->view;
    require_limit_controllers(root, policy.limits);
    const Account worker = without_other_groups(agent); // for our own programs: what the groups are is judged later
    EnvironmentInput environment{{}, {}, policy.env, ask_env_names(root, policy.env_files), rules.env, {}, agent.name, policy.agent.binary,
                                 id};
    Receiver receiver(root, caller, rules, policy.toolchains, wrapper);
    Request request = receiver.request();
    record.runs(request.program);
    const OpenedProject project = open_allowed_project(receiver, caller, rules, view, policy.projects);
    record.works_in(project.directory(), project.repository_path());
    OpenedHome user_home = receive_home([&] { return receiver.child().receive(); });
    ProjectGuards guards(root, caller, project, policy.projects); // searches while this goes on
    const AgentPlaces agents = places_of_state(policy, project.roots);
    const std::string tmpdir = ask_user_tmpdir(root, caller, project, request);

    // Prepare what the sandbox needs.
    const SessionDirectory session = SessionDirectory::create(root, id, caller.uid);
    SessionEnd end(root, *sandbox, id);
    const auto notify = [&](const std::string &notice) { to_wrapper.tell_all({notice}); };
    AskedEnd asked(session, record, notify);
    require_same_conditions(stamp, caller, agent);
    sweep(root, *sandbox);
    require_room(root, caller, policy.limits);
    slot.reset(); // from here it is a session, and counted as one
    EarlyMessages early(receiver);
    const SessionWatch watch{wrapper, termination, receiver.channel(), [&] { early.hear(); }};
    bool waited = false;
    StateDirectory state = open_state_directory(root, policy.agent.state_dir, caller.name, agent, [&] {
        waited = true;
        watch.check();
        progress.show("waiting for another start of your agent");
    });
    environment.home = state.home_path;
    const std::string project_path = place_of_project(project.shown, policy.projects.paths, state.home_path);
    if (!tmpdir.empty()) environment.tmpdir = project_path + "/" + tmpdir;
    const UniqueFd locked_settings = policy.settings_lock ? session.make_file("settings.json") : UniqueFd();
    if (locked_settings) require_locked_sessions(root, caller, id);
    const UniqueFd defaults = open_defaults(root);
    const auto show = [&](const std::string &doing) { progress.show(doing); };
    migrate_home(root, worker, state, {watch, notify, show});
    const auto bring_config_in = [&] {
        SyncPlan plan = plan_sync(policy, rules, caller, managed_environment(environment), agents);
        plan.defaults = defaults;
        if (policy.projects.paths == ProjectPaths::host) plan.project_alias = alias_of(project_path);
        plan.project_path = project_path;
        const std::vector<std::string> notices = sync_config(root, caller, worker, plan, state, locked_settings, watch, show);
        state.lock.reset();
        to_wrapper.tell_all(notices);
        HostVariables variables = ask_host_env_files(root, caller, policy.host_env_files, agents); // often of the same directory
        environment.host_files = std::move(variables.assignments);
        to_wrapper.tell_all(untold(state, "told-variables", std::move(variables.notices), request.debug));
    };
    // Locked settings are mounted over the agent's, which must be there. And where one start waits, others do: it is over sooner.
    const bool config_first = locked_settings || waited;
    if (config_first) bring_config_in();
    const UniqueFd scratch = make_scratch(root, session, policy.scratch, policy.agent.state_dir, id, agent);
    if (policy.projects.paths == ProjectPaths::alias)
        ask<Done>(root, {"maker of the project's place", worker, {state.home.get()}}, [&](const AsUser &self) {
            fault_point("making-place");
            make_alias_directory(self, state.home, alias_of(project.shown.path()));
            return Done{};
        });
    guards.wait_for_search([&] {
        watch.check();
        progress.show("looking for what is protected and masked in the project");
    });
    RootTree tree = build_root_tree(root, session, view, project, policy.projects.paths, state, caller, agent, locked_settings, guards);
    HomeMounts home_mounts(root, session, view, std::move(user_home), policy, tree);
    // Launch. While the sandbox is built, the user's config is brought in: what is started there waits for the launch record.
    auto [control, launcher] = make_channel();
    end.sandbox_may_live();
    const auto begun = Clock::now();
    sandbox->start(plan_sandbox(id, caller, agent, project, state, tree, policy), launcher);
    launcher.reset();
    guards.end_search();
    ScratchSweep leftovers(root, policy.agent.state_dir);
    ShownHome shown_home;
    try {
        GitIdentityReader git_identity(root, caller, project, agents, policy.git_identity);
        HostFilesReader host_files(root, worker, view);
        require_harmless_groups(policy, rules, agent); // many look-ups, and nothing but our own programs has these groups yet
        shown_home = home_mounts.make(caller, worker, state, defaults, scratch);
        if (policy.box_notes)
            show_box_notes(session, {project_path, state.home_path, agent.name, tree.covered, policy.settings_lock, policy.network,
                                     policy.scratch, guards.read_only(), guards.has_masks(), shown_home.readable, shown_home.caches,
                                     policy.limits, sandbox->has_limits(), sandbox->confines(), sandbox->knows_other_ids(agent)});
        if (!config_first) bring_config_in();
        show_accounts(session, view, caller, agent, state.home_path, project.shown.by_group);
        to_wrapper.tell_all(host_files.show(session, sandbox->own_files()));
        CertificateFiles certificates =
            ask_certificate_files(root, caller, find_certificate_variables(environment), {view, project_path, state.home_path}, agents);
        show_certificate_files(session, certificates);
        to_wrapper.tell_all(certificates.notices);
        environment.certificates_inside = std::move(certificates.renamed);
        const SshFiles ssh = ask_ssh_files(root, caller, rules, agents);
        show_ssh_files(root, session, agent, ssh);
        if (!ssh.key.empty()) name_ssh_command(environment);
        to_wrapper.tell_all(ssh.notices);
        to_wrapper.tell_all(git_identity.show(session, watch, guards.repository_config()));
    } catch (...) {
        end.end_after(std::current_exception());
        throw;
    }

    // Supervise.
    if (!sandbox->confines()) to_wrapper.tell_all({unconfined_notice(policy.sandbox, agent)});
    if (const auto open = open_program_notice(policy)) to_wrapper.tell_all({*open});
    shown_home.notices = untold(state, "told-home", std::move(shown_home.notices), request.debug);
    for (const auto &notices : {name_hidden(tree, project), shown_home.notices, guards.notices()})
        to_wrapper.tell_all(notices);
    if (has_all(request.on_terminal)) // who works there may work in another window, too
        to_wrapper.tell_all(untold_of(state, "told-git", project.repository_path(), guards.waiting_outside(), request.debug));
    UniqueFd terminal = give_terminal(root, tree.devpts, agent, request, wrapper);
    environment.presentation = std::move(request.presentation);
    const Program program = request.program;
    if (program == Program::canary)
        request.arguments = canary_arguments({join_path(project_path, project.below), state.home_path, caller.home,
                                              host_namespaces(sandbox->own_namespaces(policy.network)), sandbox->confines()});
    name_git_config(environment);
    keep_from_downloading(environment, policy.network, missing_search_tools());
    if (request.debug)
        to_wrapper.tell_all({"session " + id, "TMPDIR=" + escape_for_display(layer_environment(environment)["TMPDIR"].value)});
    LaunchRecord launch = plan_launch(policy, environment, std::move(request), project, project_path);
    launch.restrictions = sandbox->restrictions();
    launch.mount_points = places_of(tree.late);
    to_wrapper.tell(SessionBegun{id});
    record.started(session, agent, project.shown.path(), program);
    LimitEvents reached;
    const auto before_agent = [&] {
        require_enforced(*sandbox, policy);
        if (!tree.late.empty()) attach_late(root, sandbox->mount_namespace(), tree.late);
        confine_root(root);
        // --- confined root from here: what is left is to watch, to end and to remove ---
    };
    const auto after_agent = [&] {
        record.take_usage(sandbox->usage());
        reached = sandbox->limit_events();
    };
    PlaceholderRemoval placeholders(root, id, session.fd());
    const auto while_it_ends = [&] { placeholders.begin(); };
    const AgentEnded ended = run_recorded(record, asked, *sandbox, notify, [&, &channel = control] { // clang 14 takes no name of a pair
        const auto send = [&](FdRef pty) { hand_record_over(root, policy, environment, launch, channel, pty); };
        const Session watched{wrapper, to_wrapper,       receiver,     channel,     termination,
                              send,    early.messages(), before_agent, after_agent, while_it_ends};
        const AgentEnded seen = supervise(*sandbox, watched, std::move(terminal));
        end.sandbox_has_ended();
        release_scratch(scratch);
        return seen;
    });
    try { // until what the session left is gone, it counts as a start
        slot = take_start_slot(root, caller.uid);
        session.unlock();
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): all taken: it stays counted as a session until then
    }
    for (const auto &notice : {nearly_full(state.home, state.home_path), nearly_full(scratch, "the session's /tmp")})
        if (notice) to_wrapper.tell_all({*notice});
    to_wrapper.tell_all(limit_notices(policy.limits, reached, ended, sandbox->result().result, Clock::now() - begun));
    // What concerns the user's repository is over before they hear of the end: git stops where a commondir goes while it looks.
    release_project(root, tree);
    placeholders.finish(in_seconds(1));
    to_wrapper.tell(ended);                     // nobody waits for the removal of the rest
    if (!asked.was_asked()) leftovers.finish(); // else the administrator waits for the end of all of it
}

} // namespace

void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    try {
        prepare_and_run(root, caller, wrapper, record);
    } catch (const EndedBySignal &asked) {
        record.failed(ExitStatus::system_failure, "ended by a signal before the agent was started");
        ToWrapper(wrapper).tell(AgentEnded{true, asked.number});
    }
}

} // namespace pi_agent

// Asks for the sandbox and the gate, works while they are built, tells the user the notices of the start, and composes the launch record.
#include "runner/inside/canary_plan.hpp"
#include "runner/root/launch/phases.hpp"

#include <tuple>

namespace pi_agent {

// What only sessions with a network of hosts have: asks for the gate, says inside where it is, and opens it.

namespace {

constexpr const char *gate_directory = "gate"; // of the session: the gate's file system
constexpr const char *resolv_conf = "resolv.conf";
constexpr const char *hosts_file = "hosts";

// A mount costs each start half a millisecond, and one that is asked for in vain hardly less. So what the host does not have is not asked
// for, and the symlinks of a merged /usr are made again as symlinks.
GateRoot make_gate_root(const SessionDirectory &session)
{
    GateRoot root{session.path() + "/" + gate_directory, {}};
    session.make_directory(gate_directory);
    for (const auto &place : places_of_gate()) {
        struct stat facts {};
        if (lstat(place.c_str(), &facts) != 0) {
            require_gone("examining the host's " + place);
            continue;
        }
        if (S_ISLNK(facts.st_mode) && is_within(resolve_trusted(place, "host's").canonical, "/usr"))
            session.make_link(gate_directory + place, read_link(FdRef(AT_FDCWD), place));
        else
            root.shown.push_back(place);
    }
    return root;
}

// Where a name of /etc leads on the host. In /run, which is the session's own, by its text: what the host has there may be a service's own,
// as what systemd-resolved writes is, and only the place counts.
std::string end_on_host(const std::string &path)
{
    const std::string target = read_link(FdRef(AT_FDCWD), path);
    const std::string named = resolved_by_text(target.starts_with('/') ? target : pi_agent::parent_of(path) + "/" + target);
    return is_within(named, "/run") ? named : resolve_trusted(path, "host's").canonical;
}

// A file of /etc that is the session's own. Of the host's view, /etc is the host's own: then the file is where that leads.
void show_in_etc(const Entered &entered, const OpenedSession &session, RootTree &tree, const char *name, const std::string &text)
{
    const std::string path = std::string("/etc/") + name;
    if (entered.admission.view.view == View::minimal)
        return write_whole(session.directory.make_late_file("root" + path), text, "the session's " + path);
    const std::string end = end_on_host(path);
    if (is_within(end, "/run")) {
        session.directory.make_directory(pi_agent::parent_of(end).substr(1));
        return session.directory.write_file(end.substr(1), text);
    }
    session.directory.write_file(name, text);
    const UniqueFd file = open_or_throw("opening the session's " + path, session.directory.fd(), name, O_PATH | O_NOFOLLOW);
    tree.late.push_back({clone_mount(entered.root, file, Submounts::leave_out, MountAttributes{true, nullptr}), end});
}

// What of the view's /etc comes from elsewhere than the host.
std::vector<std::string> files_of_others(const Entered &entered, const Heard &heard)
{
    std::vector<std::string> names = entered.sandbox->facts().own_files;
    if (heard.has_gate()) names.insert(names.end(), {resolv_conf, hosts_file});
    return names;
}

// Says in the session where its gate is, and what its network is. Returns an empty file of the session's, into which root writes what the
// gate tells (runner/root/confined/session_end.cpp).
UniqueFd show_gate(Entered &entered, const Heard &heard, const OpenedSession &session, RootTree &tree)
{
    show_in_etc(entered, session, tree, resolv_conf, resolv_conf_inside());
    show_in_etc(entered, session, tree, hosts_file, hosts_inside(host_name(), names_inside(heard.policy.network)));
    session.directory.make_directory(pi_agent::parent_of(network_file));
    session.directory.write_file(network_file, encode({heard.policy.network, routed_providers(heard.policy)}));
    return session.directory.make_file(denials_file);
}

// Asks for the sandbox, works while it is built, collects messages for the user, and composes the launch record.

SandboxPlan plan_sandbox(const Entered &entered, const Heard &heard, const OpenedSession &session, const BuiltView &view)
{
    const RootTree &tree = view.tree;
    const Account &agent = entered.admission.agent;
    SandboxPlan plan = {entered.id,          entered.caller.uid,   agent.uid,
                        agent.gid,           view.further_groups,  agent.groups,
                        tree.path,           tree.binds,           session.state.home_path,
                        tree.writable_roots, heard.policy.network, heard.policy.limits};
    plan.tracing = heard.policy.tracing;
    plan.calls = heard.policy.calls;
    plan.devices = view.devices.nodes;
    plan.late_files = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}; // docker would put its own files there
    if (heard.policy.box_notes) plan.late_files.emplace_back("/AGENTS.md");
    return plan;
}

UniqueFd start_sandbox(Entered &entered, Heard &heard, OpenedSession &session, const BuiltView &view)
{
    auto ends = make_channel(); // the runner's, and the launcher's
    entered.tell(untold(session.state, "told-devices", view.devices.notices, heard.request.debug));
    session.ending.sandbox_may_live();
    entered.begin("waiting for " + entered.sandbox->facts().name);
    entered.sandbox->start(plan_sandbox(entered, heard, session, view), ends.second);
    entered.begin("bringing home and configuration up to date");
    ends.second.reset();
    heard.guards.end_search();
    return std::move(ends.first);
}

void show_notes(const Entered &entered, const Heard &heard, const OpenedSession &session, const RootTree &tree, const ShownHome &home)
{
    const Policy &policy = heard.policy;
    const Sandbox &sandbox = *entered.sandbox;
    const Account &agent = entered.admission.agent;
    if (!policy.box_notes) return;
    show_box_notes(session.directory, {policy, session.project_path, session.state.home_path, agent.name, tree.covered,
                                       heard.guards.read_only(), heard.guards.has_masks(), home.readable, home.caches, sandbox.has_limits(),
                                       sandbox.confines(), std::max(agent.uid.value(), agent.gid.value()) < sandbox.facts().known_ids});
}

// Returns the variables that name them, with their paths inside.
std::map<std::string, std::string> show_certificates(Entered &entered, const Heard &heard, const OpenedSession &session,
                                                     const Synced &synced)
{
    EnvironmentInput environment = session.environment;
    environment.host_files = synced.host_files;
    CertificateFiles files = ask_certificate_files(entered.root, entered.caller, find_certificate_variables(environment),
                                                   {entered.admission.view, session.project_path, session.state.home_path}, heard.agents);
    show_certificate_files(session.directory, files);
    entered.tell(untold(session.state, "told-certificates", files.notices, heard.request.debug));
    return std::move(files.renamed);
}

// Whether there is a key for ssh, and one that signs.
std::pair<bool, bool> show_keys(Entered &entered, const Heard &heard, const OpenedSession &session)
{
    const SshFiles files = ask_ssh_files(entered.root, entered.caller, entered.admission.rules, heard.agents);
    show_ssh_files(entered.root, session.directory, entered.admission.agent, files);
    entered.tell(files.notices);
    return {!files.key.empty(), !files.signing_key.empty()};
}

void take_git(Entered &entered, const Heard &heard, const OpenedSession &session, const GitNotices &git)
{
    if (git.unsigned_for != GitSigning::none) entered.record.commits_are_unsigned();
    entered.tell(git.always);
    entered.tell(untold_of(session.state, "told-git-settings", heard.project.repository_path(), git.once, heard.request.debug));
}

// The arguments of another program are unknown.
void hand_files_over(Entered &entered, Heard &heard, const OpenedSession &session, RootTree &tree)
{
    if (heard.request.program != Program::agent) return;
    std::vector<std::string> &arguments = heard.request.arguments;
    const std::string project = heard.project.shown.path();
    const std::vector<ArgumentFile> files = find_named_files(arguments, join_path(project, heard.project.below), entered.caller.home);
    NamedCopies copies = copy_for_session(entered.root, entered.caller, files, {entered.admission.view, project, session.state.home_path},
                                          heard.agents, session.watch);
    for (std::size_t index = 0; index < copies.handed.states.size(); ++index) {
        const ArgumentFile &file = files[index];
        const auto state = static_cast<Handed>(copies.handed.states[index]);
        if (state == Handed::copied) {
            rename_argument(arguments, file, place_of_copy(index + 1, file));
            if (heard.request.debug)
                entered.tell({escape_for_display(file.path) + ": the agent has a copy, " + escape_for_display(arguments[file.argument])});
        } else if (const char first = arguments[file.argument][file.begin];
                   state == Handed::shown && (first == '/' || first == '~' || !is_within(file.path, project))) {
            rename_argument(arguments, file,
                            is_within(file.path, project) ? session.project_path + file.path.substr(project.size()) : file.path);
        }
    }
    if (copies.mount) {
        session.directory.make_directory(std::string(copies_inside).substr(1));
        tree.late.push_back({std::move(*copies.mount), copies_inside});
    }
    entered.tell(copies.handed.notices);
}

Fetched fetch_meanwhile(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view)
{
    try {
        const bool is_unmapped = heard.policy.projects.ownership == ProjectOwnership::none && heard.project.repository;
        GitIdentityReader git_identity(entered.root, entered.caller, heard.project, entered.admission.view, heard.agents,
                                       heard.policy.git_identity,
                                       is_unmapped ? join_path(session.project_path, *heard.project.repository) : "");
        HostFilesReader host_files(entered.root, entered.worker, entered.admission.view);
        // Takes many look-ups, and until now only our own programs run with these groups.
        require_harmless_groups(heard.policy, entered.admission.rules, entered.admission.agent);
        ShownHome home = view.home_mounts.make(entered.caller, entered.worker, session.state, session.defaults, view.scratch);
        show_notes(entered, heard, session, view.tree, home);
        Synced synced = view.synced ? *view.synced : bring_config_in(entered, heard, session);
        show_accounts(session.directory, entered.admission.view, entered.caller, entered.admission.agent, session.state.home_path,
                      view.further_groups);
        const auto too_large = host_files.show(session.directory, files_of_others(entered, heard));
        entered.tell(untold(session.state, "told-host-files", too_large, heard.request.debug));
        auto certificates = show_certificates(entered, heard, session, synced);
        const auto [has_ssh_key, has_signing_key] = show_keys(entered, heard, session);
        hand_files_over(entered, heard, session, view.tree);
        const GitNotices git = git_identity.show(session.directory, session.watch, heard.guards.repository_config(), has_signing_key);
        take_git(entered, heard, session, git);
        return {std::move(synced), std::move(home), std::move(certificates), has_ssh_key, has_signing_key, git.unsigned_for};
    } catch (...) {
        session.ending.end_after(std::current_exception());
        throw;
    }
}

UniqueFd tell_and_give_terminal(Entered &entered, const Heard &heard, const OpenedSession &session, const RootTree &tree,
                                Launched &launched, const EnvironmentInput &environment)
{
    const bool always = heard.request.debug;
    if (!entered.sandbox->confines())
        entered.tell({"NOT SANDBOXED: the policy says sandbox.method: none (" + to_string(heard.policy.sandbox.where) +
                      "). The agent runs as " + entered.admission.agent.name +
                      ", and nothing but the rights of that account keeps it from this host's processes, devices and services"});
    if (const auto open = open_program_notice(heard.policy)) entered.tell({*open});
    const auto of_home = untold(session.state, "told-home", launched.fetched.home.notices, always);
    for (const auto &[name, notice] : missed_keys(heard.request.kept_out, environment, heard.policy.host_env_files))
        entered.tell(untold_of(session.state, "told-keys", name, {notice}, always));
    const auto hidden = untold_of(session.state, "told-hidden", heard.project.directory(), name_hidden(tree, heard.project), always);
    for (const auto &notices : {hidden, of_home, heard.guards.notices()})
        entered.tell(notices);
    if (has_all(heard.request.on_terminal)) // a user who works there may also work in another window
        entered.tell(untold_of(session.state, "told-git", heard.project.repository_path(), heard.guards.waiting_outside(), always));
    return give_terminal(entered.root, tree.devpts, entered.admission.agent, heard.request, entered.wrapper);
}

// The program that the request asks for, and its argv[0].
std::pair<std::string, std::string> program_of(const AgentPolicy &agent, Program program)
{
    if (program == Program::shell) return {build::shell_path, "bash"};
    if (program == Program::canary) return {build::canary_path, "pi-agent-canary"};
    return {agent.binary, agent.binary_name};
}

std::vector<std::string> arguments_of(const Entered &entered, Heard &heard, const OpenedSession &session)
{
    if (heard.request.program != Program::canary) return std::move(heard.request.arguments);
    return canary_arguments({join_path(session.project_path, heard.project.below), session.state.home_path, entered.caller.home,
                             host_namespaces(entered.sandbox->own_namespaces(heard.policy.network)), entered.sandbox->confines(),
                             allowed_calls_of(heard.policy.calls), heard.policy.network.mode == NetworkMode::hosts});
}

ShellPlaces hear_shell(const Entered &entered, const Heard &heard, const OpenedSession &session, const ShownHome &home)
{
    std::vector<std::string> directories = system_path();
    for (const auto &directory : heard.policy.path)
        directories.push_back(directory.path);
    PlacesInside places{{{heard.project.shown.path(), session.project_path}},
                        home.places,
                        entered.admission.view,
                        heard.project.below,
                        [&](const std::string &name) { return has_name(directories, name); }};
    if (heard.policy.projects.paths == ProjectPaths::host)
        for (const auto &other : heard.project.git_directories)
            places.work.emplace_back(other.path(), other.path());
    return judge_shell_places(heard.request.presentation, places);
}

// From its parts: the policy's and the session's, the caller's, and what names files that the start brought in.
EnvironmentInput whole_environment(const Heard &heard, const OpenedSession &session, const Fetched &fetched, const ShellPlaces &shell)
{
    EnvironmentInput environment = session.environment;
    environment.presentation = shell.presentation;
    environment.user_path = shell.path;
    environment.host_files = fetched.synced.host_files;
    environment.certificates_inside = fetched.certificates_inside;
    if (fetched.has_ssh_key) name_ssh_command(environment);
    if (fetched.has_signing_key) name_signing_key(environment);
    if (fetched.unsigned_for == GitSigning::of_repository) leave_commits_unsigned(environment);
    name_git_config(environment);
    keep_from_downloading(environment, heard.policy.network, missing_search_tools());
    return environment;
}

LaunchRecord compose(Entered &entered, Heard &heard, const OpenedSession &session, const RootTree &tree, const ShellPlaces &shell,
                     const EnvironmentInput &environment)
{
    entered.tell(untold(session.state, "told-shell", shell.notices, heard.request.debug));
    if (heard.request.debug) {
        auto variables = layer_environment(environment);
        entered.tell({"session " + entered.id, std::string("sandbox.method: ") + to_string(heard.policy.sandbox.method),
                      "TMPDIR=" + escape_for_display(variables["TMPDIR"].value), "PATH=" + escape_for_display(variables["PATH"].value)});
    }
    LaunchRecord record;
    record.arguments = arguments_of(entered, heard, session);
    record.arguments.emplace(record.arguments.begin());
    std::tie(record.binary, record.arguments.front()) = program_of(heard.policy.agent, heard.request.program);
    record.environment = compose_environment(environment);
    record.project = session.project_path;
    record.below = heard.project.below;
    record.cwd_inode = heard.project.cwd_inode;
    record.umask = heard.request.umask & 077U; // a umask that takes the owner's permissions would shut the agent out of its own files
    record.open_files = heard.request.open_files;
    if (const auto &said = heard.policy.limits.files) record.most_open_files = said->amount;
    record.on_terminal = heard.request.on_terminal;
    record.restrictions = entered.sandbox->facts().restrictions;
    for (const auto &late : tree.late)
        record.mount_points.push_back(late.path);
    record.tracing = heard.policy.tracing;
    record.denied_calls = denied_calls_of(heard.policy.calls);
    record.allowed_calls = allowed_calls_of(heard.policy.calls);
    record.address_families = address_families_of(heard.policy.calls);
    if (const auto processes = namespace_of("self", "pid")) record.hosts_processes = processes->inode;
    record.ports = heard.request.ports;
    record.has_mode_changer = record.restrictions != Restrictions::none; // otherwise systemd's filter refuses the bit
    record.keeps_project = heard.policy.limits.disk.has_value();
    return record;
}

} // namespace

std::unique_ptr<SessionGate> ask_for_gate(const Entered &entered, const Heard &heard, const OpenedSession &session)
{
    if (!heard.has_gate()) return {};
    GateRoot root = make_gate_root(session.directory);
    if (heard.policy.limits.cpu) root.cpu = heard.policy.limits.cpu->amount;
    return std::make_unique<SessionGate>(*entered.sandbox, std::move(root));
}

void open_gate(const Entered &entered, const Heard &heard, SessionGate &gate)
{
    entered.sandbox->require_harmless_drop_ins(gate_name(entered.id));         // as the next line, before a key is read
    const std::vector<std::uint16_t> ports = host_ports(heard.policy.network); // refuses some
    GateOrder order = plan_gate(heard.policy, entered.id);
    // Forgets the keys, whatever happens: who cleans up after a failure has children with other rights, which inherit this memory.
    const std::unique_ptr<GateOrder, void (*)(GateOrder *)> forgotten(&order, [](GateOrder *with_keys) { forget_keys(*with_keys); });
    const std::vector<ProviderRule> &providers = routed_providers(heard.policy);
    order.providers.reserve(providers.size()); // a longer list would leave copies of keys behind
    for (const auto &rule : providers)
        order.providers.push_back(to_gate_provider(rule, read_provider_key(rule)));
    if (const auto &file = heard.policy.network.via_login_file; !file.path.empty())
        order.login = read_provider_key({"the proxy", file, {}, file.where});
    gate.open(entered.root, order, ports);
}

Launched::Launched(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, std::unique_ptr<SessionGate> asked_gate)
    : begun(Clock::now()), control(start_sandbox(entered, heard, session, view)), gate(std::move(asked_gate)),
      denials(gate ? show_gate(entered, heard, session, view.tree) : UniqueFd()), leftovers(entered.root, heard.policy.agent.state_dir),
      fetched(fetch_meanwhile(entered, heard, session, view))
{
}

Presented::Presented(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched)
    : shell(hear_shell(entered, heard, session, launched.fetched.home)),
      environment(whole_environment(heard, session, launched.fetched, shell)),
      terminal(tell_and_give_terminal(entered, heard, session, view.tree, launched, environment)),
      launch(compose(entered, heard, session, view.tree, shell, environment))
{
    if (launch.has_mode_changer)
        modes.emplace(entered.root, "changer of modes", agent_with_groups_of(entered.worker, entered.caller), std::vector<int>(),
                      [](const AsUser &agent, FdRef channel) {
                          fault_point("changing-modes");
                          serve_directory_modes(agent, channel);
                      });
    entered.record.started(session.directory, entered.admission.agent, heard.project.shown.path(), heard.request.program);
}

} // namespace pi_agent

// Asking for the sandbox, and what is done while it is built.
#include "runner/root/launch/phases.hpp"

#include "runner/root/door/authenticate.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/view/kernel_files.hpp"

#include <exception>
#include <utility>

namespace pi_agent {

namespace {

SandboxPlan plan_sandbox(const Entered &entered, const OpenedProject &project, const OpenedSession &session, const RootTree &tree)
{
    const Account &agent = entered.admission.agent;
    SandboxPlan plan{entered.id,
                     entered.caller.uid,
                     agent.uid,
                     agent.gid,
                     {},
                     agent.groups,
                     tree.path,
                     tree.binds,
                     session.state.home_path,
                     tree.writable_roots,
                     entered.policy.network,
                     entered.policy.limits};
    if (project.shown.by_group) plan.groups.push_back(*project.shown.by_group);
    for (const auto &other : project.git_directories)
        if (other.by_group && other.by_group != project.shown.by_group) plan.groups.push_back(*other.by_group);
    plan.late_files = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}; // of those, docker would put its own there
    if (entered.policy.box_notes) plan.late_files.emplace_back("/AGENTS.md");
    return plan;
}

UniqueFd start_sandbox(Entered &entered, Heard &heard, OpenedSession &session, const RootTree &tree)
{
    auto ends = make_channel(); // the runner's, and the launcher's
    session.end.sandbox_may_live();
    entered.sandbox->start(plan_sandbox(entered, heard.project, session, tree), ends.second);
    ends.second.reset();
    heard.guards.end_search();
    return std::move(ends.first);
}

void show_notes(const Entered &entered, const ProjectGuards &guards, const OpenedSession &session, const RootTree &tree,
                const ShownHome &home)
{
    const Policy &policy = entered.policy;
    const Sandbox &sandbox = *entered.sandbox;
    if (!policy.box_notes) return;
    show_box_notes(session.directory,
                   {session.project_path, session.state.home_path, entered.admission.agent.name, tree.covered, policy.settings_lock,
                    policy.network, policy.scratch, guards.read_only(), guards.has_masks(), home.readable, home.caches, policy.limits,
                    sandbox.has_limits(), sandbox.confines(), sandbox.knows_other_ids(entered.admission.agent)});
}

void show_certificates(Entered &entered, const Heard &heard, const OpenedSession &session)
{
    CertificateFiles files = ask_certificate_files(entered.root, entered.caller, find_certificate_variables(entered.environment),
                                                   {entered.admission.view, session.project_path, session.state.home_path}, heard.agents);
    show_certificate_files(session.directory, files);
    entered.tell(files.notices);
    entered.environment.certificates_inside = std::move(files.renamed);
}

void show_key(Entered &entered, const Heard &heard, const OpenedSession &session)
{
    const SshFiles files = ask_ssh_files(entered.root, entered.caller, entered.admission.rules, heard.agents);
    show_ssh_files(entered.root, session.directory, entered.admission.agent, files);
    if (!files.key.empty()) name_ssh_command(entered.environment);
    entered.tell(files.notices);
}

Synced fetch_meanwhile(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, ShownHome &home)
{
    const Account &agent = entered.admission.agent;
    GitIdentityReader git_identity(entered.root, entered.caller, heard.project, heard.agents, entered.policy.git_identity);
    HostFilesReader host_files(entered.root, entered.worker, entered.admission.view);
    // Many look-ups, and nothing but our own programs has these groups yet.
    require_harmless_groups(entered.policy, entered.admission.rules, agent);
    home = view.home_mounts.make(entered.caller, entered.worker, session.state, session.defaults, view.scratch);
    show_notes(entered, heard.guards, session, view.tree, home);
    const Synced synced = view.synced ? *view.synced : bring_config_in(entered, heard, session);
    show_accounts(session.directory, entered.admission.view, entered.caller, agent, session.state.home_path, heard.project.shown.by_group);
    entered.tell(host_files.show(session.directory, entered.sandbox->own_files()));
    show_certificates(entered, heard, session);
    show_key(entered, heard, session);
    entered.tell(git_identity.show(session.directory, session.watch, heard.guards.repository_config()));
    return synced;
}

Synced fetch_or_end(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, ShownHome &home)
{
    try {
        return fetch_meanwhile(entered, heard, session, view, home);
    } catch (...) {
        session.end.end_after(std::current_exception());
        throw;
    }
}

} // namespace

Launched::Launched(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view)
    : begun(Clock::now()), control(start_sandbox(entered, heard, session, view.tree)),
      leftovers(entered.root, entered.policy.agent.state_dir), synced(fetch_or_end(entered, heard, session, view, home))
{
}

} // namespace pi_agent

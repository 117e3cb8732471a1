// Making the session, bringing the home in line, and building the view by descriptor.
#include "runner/root/launch/phases.hpp"

#include "common/seams/seams.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/as_agent/seed_defaults.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/config_sync.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/errand/migrations.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/session/scratch.hpp"
#include "runner/root/session/to_wrapper.hpp"
#include "runner/root/view/root_tree.hpp"

#include <utility>

namespace pi_agent {

namespace {

ShowProgress shown_by(Entered &entered)
{
    return [&entered](const std::string &doing) { entered.progress.show(doing); };
}

StateDirectory open_state(Entered &entered, OpenedSession &session)
{
    require_same_conditions(entered.stamp, entered.caller, entered.admission.agent);
    sweep(entered.root, *entered.sandbox);
    require_room(entered.root, entered.caller, entered.policy.limits);
    entered.slot.reset(); // from here it is a session, and counted as one
    return open_state_directory(entered.root, entered.policy.agent.state_dir, entered.caller.name, entered.admission.agent, [&] {
        session.waited = true;
        session.watch.check();
        entered.progress.show("waiting for another start of your agent");
    });
}

RootTree build_tree(Entered &entered, Heard &heard, OpenedSession &session)
{
    const ProjectPaths paths = entered.policy.projects.paths;
    if (paths == ProjectPaths::alias)
        ask<Done>(entered.root, {"maker of the project's place", entered.worker, {session.state.home.get()}}, [&](const AsUser &self) {
            fault_point("making-place");
            make_alias_directory(self, session.state.home, alias_of(heard.project.shown.path()));
            return Done{};
        });
    heard.guards.wait_for_search([&] {
        session.watch.check();
        entered.progress.show("looking for what is protected and masked in the project");
    });
    return build_root_tree(entered.root, session.directory, entered.admission.view, heard.project, paths, session.state, entered.caller,
                           entered.admission.agent, session.locked_settings, heard.guards);
}

} // namespace

OpenedSession::OpenedSession(Entered &entered, Heard &heard)
    : directory(SessionDirectory::create(entered.root, entered.id, entered.caller.uid)),
      ending(entered.root, *entered.sandbox, entered.id, directory, entered.record,
             [&entered](const std::string &notice) { entered.tell({notice}); }),
      early(heard.receiver), watch{entered.wrapper, entered.termination, heard.receiver.channel(), [this] { early.hear(); }},
      state(open_state(entered, *this)),
      project_path(place_of_project(heard.project.shown, entered.policy.projects.paths, state.home_path)),
      locked_settings(entered.policy.settings_lock ? directory.make_file("settings.json") : UniqueFd()),
      defaults(open_defaults(entered.root))
{
    entered.environment.home = state.home_path;
    if (!heard.tmpdir.empty()) entered.environment.tmpdir = project_path + "/" + heard.tmpdir;
    if (locked_settings) require_locked_sessions(entered.root, entered.caller, entered.id);
    migrate_home(entered.root, entered.worker, state,
                 {watch, [&](const std::string &notice) { entered.tell({notice}); }, shown_by(entered)});
}

Synced bring_config_in(Entered &entered, Heard &heard, OpenedSession &session)
{
    const Policy &policy = entered.policy;
    SyncPlan plan = plan_sync(policy, entered.admission.rules, entered.caller, managed_environment(entered.environment), heard.agents);
    plan.defaults = session.defaults;
    if (policy.projects.paths == ProjectPaths::host) plan.project_alias = alias_of(session.project_path);
    plan.project_path = session.project_path;
    const std::vector<std::string> notices = sync_config(entered.root, entered.caller, entered.worker, plan, session.state,
                                                         session.locked_settings, session.watch, shown_by(entered));
    session.state.lock.reset();
    entered.tell(notices);
    // Often of the same directory.
    HostVariables variables = ask_host_env_files(entered.root, entered.caller, policy.host_env_files, heard.agents);
    entered.environment.host_files = std::move(variables.assignments);
    entered.tell(untold(session.state, "told-variables", std::move(variables.notices), heard.request.debug));
    return {};
}

BuiltView::BuiltView(Entered &entered, Heard &heard, OpenedSession &session)
    : synced(session.locked_settings || session.waited ? std::optional(bring_config_in(entered, heard, session)) : std::nullopt),
      scratch(make_scratch(entered.root, session.directory, entered.policy.scratch, entered.policy.agent.state_dir, entered.id,
                           entered.admission.agent)),
      tree(build_tree(entered, heard, session)),
      home_mounts(entered.root, session.directory, entered.admission.view, std::move(heard.home), entered.policy, tree)
{
}

} // namespace pi_agent

// Telling what there is to tell, and composing the launch record.
#include "runner/root/launch/phases.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/text.hpp"
#include "common/host/namespaces.hpp"
#include "runner/plan/canary_plan.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/kernel/installed_tools.hpp"
#include "runner/root/method/sandbox_methods.hpp"
#include "runner/root/session/to_wrapper.hpp"
#include "runner/root/view/root_tree.hpp"

#include <utility>

namespace pi_agent {

namespace {

void tell_what_differs(Entered &entered, const Heard &heard, const OpenedSession &session, const RootTree &tree, Launched &launched)
{
    const bool always = heard.request.debug;
    if (!entered.sandbox->confines()) entered.tell({unconfined_notice(entered.policy.sandbox, entered.admission.agent)});
    if (const auto open = open_program_notice(entered.policy)) entered.tell({*open});
    const auto of_home = untold(session.state, "told-home", std::move(launched.home.notices), always);
    for (const auto &notices : {name_hidden(tree, heard.project), of_home, heard.guards.notices()})
        entered.tell(notices);
    if (has_all(heard.request.on_terminal)) // who works there may work in another window, too
        entered.tell(untold_of(session.state, "told-git", heard.project.repository_path(), heard.guards.waiting_outside(), always));
}

// The program that the request asks for, and its argv[0].
void name_program(LaunchRecord &record, const AgentPolicy &agent, Program program)
{
    switch (program) {
    case Program::agent:
        record.binary = agent.binary;
        record.arguments = {agent.binary_name};
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
}

std::vector<std::string> arguments_of(const Entered &entered, Heard &heard, const OpenedSession &session)
{
    if (heard.request.program != Program::canary) return std::move(heard.request.arguments);
    const Sandbox &sandbox = *entered.sandbox;
    return canary_arguments({join_path(session.project_path, heard.project.below), session.state.home_path, entered.caller.home,
                             host_namespaces(sandbox.own_namespaces(entered.policy.network)), sandbox.confines()});
}

void complete_environment(Entered &entered, Heard &heard)
{
    entered.environment.presentation = std::move(heard.request.presentation);
    name_git_config(entered.environment);
    keep_from_downloading(entered.environment, entered.policy.network, missing_search_tools());
    if (heard.request.debug)
        entered.tell({"session " + entered.id, "TMPDIR=" + escape_for_display(layer_environment(entered.environment)["TMPDIR"].value)});
}

LaunchRecord compose(Entered &entered, Heard &heard, const OpenedSession &session, const RootTree &tree)
{
    complete_environment(entered, heard);
    LaunchRecord record;
    name_program(record, entered.policy.agent, heard.request.program);
    const std::vector<std::string> arguments = arguments_of(entered, heard, session);
    record.arguments.insert(record.arguments.end(), arguments.begin(), arguments.end());
    record.environment = compose_environment(entered.environment);
    record.project = session.project_path;
    record.below = heard.project.below;
    record.cwd_inode = heard.project.cwd_inode;
    record.umask = heard.request.umask & 077U; // one that takes its owner's rights would shut the agent out of what it makes
    record.on_terminal = heard.request.on_terminal;
    record.restrictions = entered.sandbox->restrictions();
    record.mount_points = places_of(tree.late);
    return record;
}

UniqueFd give_terminal(Entered &entered, const Heard &heard, const OpenedSession &session, const RootTree &tree, Launched &launched)
{
    tell_what_differs(entered, heard, session, tree, launched);
    return give_terminal(entered.root, tree.devpts, entered.admission.agent, heard.request, entered.wrapper);
}

} // namespace

Presented::Presented(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched)
    : terminal(give_terminal(entered, heard, session, view.tree, launched)), launch(compose(entered, heard, session, view.tree))
{
    entered.to_wrapper.tell(SessionBegun{entered.id});
    entered.record.started(session.directory, entered.admission.agent, heard.project.shown.path(), heard.request.program);
}

} // namespace pi_agent

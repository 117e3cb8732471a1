// Who asks, under which policy, in which control group; and what they ask for.
#include "runner/root/launch/phases.hpp"

#include "runner/root/door/authenticate.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/door/start_slot.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/kernel/enforcement.hpp"
#include "runner/wire/answer.hpp"

#include <optional>
#include <utility>

namespace pi_agent {

namespace {

std::string name_session(const AsRoot &root, SessionRecord &record)
{
    require_host_namespaces(root);
    std::string id = make_session_id();
    record.names(id);
    return id;
}

Policy read_policy(const Account &caller, SessionRecord &record)
{
    Policy policy = load_enabled_policy(caller);
    record.runs_in(policy.sandbox.method);
    return policy;
}

// A signal that killed this process while it is moved would leave a scope behind, so they are blocked before.
UniqueFd reset_process(const AsRoot &root)
{
    reset_process_state(root);
    return watch_termination();
}

Admission leave_callers_group(const AsRoot &root, const Policy &policy, const Account &caller, Sandbox &sandbox)
{
    std::optional<Admission> admission;
    sandbox.leave_callers_group([&] { admission.emplace(admit(policy, caller)); });
    // --- from here the caller can neither freeze nor kill this process ---
    require_limit_controllers(root, policy.limits);
    return std::move(*admission);
}

Request hear_request(Receiver &receiver, SessionRecord &record)
{
    Request request = receiver.request();
    record.runs(request.program);
    return request;
}

OpenedProject hear_project(Receiver &receiver, const Entered &entered)
{
    const Admission &admission = entered.admission;
    OpenedProject project = open_allowed_project(receiver, entered.caller, admission.rules, admission.view, entered.policy.projects);
    entered.record.works_in(project.directory(), project.repository_path());
    return project;
}

} // namespace

Entered::Entered(const AsRoot &as_root, const Account &asking, FdRef wrappers_socket, SessionRecord &recorded)
    : root(as_root), caller(asking), wrapper(wrappers_socket), record(recorded), id(name_session(root, record)), progress(wrapper),
      to_wrapper(wrapper), slot(wait_for_start_slot(root, caller.uid, [&] { progress.show("waiting for other starts of yours"); })),
      stamp(stamp_start(caller)), policy(read_policy(caller, record)), sandbox(make_sandbox(root, policy.sandbox, id, caller.uid)),
      termination(reset_process(root)), admission(leave_callers_group(root, policy, caller, *sandbox)),
      worker(without_other_groups(admission.agent)),
      environment{
          {}, {}, policy.env, ask_env_names(root, policy.env_files), admission.rules.env, {}, admission.agent.name, policy.agent.binary, id}
{
}

Heard::Heard(Entered &entered)
    : receiver(entered.root, entered.caller, entered.admission.rules, entered.policy.toolchains, entered.wrapper),
      request(hear_request(receiver, entered.record)), project(hear_project(receiver, entered)),
      home(receive_home([&] { return receiver.child().receive(); })),
      guards(entered.root, entered.caller, project, entered.policy.projects), agents(places_of_state(entered.policy, project.roots)),
      tmpdir(ask_user_tmpdir(entered.root, entered.caller, project, request))
{
}

} // namespace pi_agent

// Running docker in a session's unit.
#include "runner/root/method/sandbox_systemd.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/engine_commands.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/method/docker_daemon.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_directory.hpp"

#include <algorithm>
#include <linux/magic.h>
#include <sys/stat.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr int sweep_patience_seconds = 2;

// Who may ask the daemon is root.
void require_no_power_over_docker(const SandboxPlan &plan, gid_t group)
{
    if (group == 0 || !defence_is_on("docker:no-group")) return;
    const auto is_it = [&](Gid one) { return one.value() == group; };
    if (plan.agent_group.value() != group && std::none_of(plan.groups.begin(), plan.groups.end(), is_it) &&
        std::find(plan.account_groups.begin(), plan.account_groups.end(), group) == plan.account_groups.end())
        return;
    throw Failure(ExitStatus::denied, "denied: the agent would be in the group docker (" + std::to_string(group) +
                                          "), whose members are root on this host; the administrator takes its account out of it");
}

} // namespace

DockerSandbox::DockerSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy)
    : ContainerSandbox(root, SandboxMethod::docker, std::move(session_id), user), host_(require_docker(root, policy))
{
}

void DockerSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    ContainerSandbox::leave_callers_group(meanwhile);
    if (defence_is_on("docker:sweep")) sweep_containers();
}

// A client that is killed while the daemon makes its container leaves that to nobody, when the cleanup of its session came before it.
void DockerSandbox::sweep_containers()
{
    const std::string prefix = "/" + container_name("");
    try { // best_effort: it keeps nobody, and the next start tries again
        const Deadline deadline = in_seconds(sweep_patience_seconds);
        for (const std::string &name : ended_containers(root(), deadline)) {
            const std::string id = name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : "";
            if (!is_session_id(id) || session_exists(root(), id) || may_live(id)) continue;
            remove_ended_container(root(), container_name(id), deadline);
            record_problem(id, "a container without a session was removed");
        }
    } catch (const Failure &failure) {
        record_problem(id(), std::string("containers without a session cannot be removed: ") + failure.what());
    }
}

void DockerSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    require_no_power_over_docker(plan, host_.group);
    prepare(plan);
    agent_ = plan.agent;
    const std::string session = plan.root_directory.substr(0, plan.root_directory.rfind('/'));
    if (mkdir((session + "/" + docker_mark).c_str(), 0700) != 0) throw_errno("marking the session as one of docker's");
    door_.emplace(session, launcher);
    watch(door_->fd());
    const DockerContainer container{host_.image, place_in_hierarchy(*group()), host_name(), show_tree(plan)};
    start_engine(plan, FdRef(-1), docker_command(plan, container));
}

// Who knocked may be gone by now, and nobody is let in any more.
void DockerSandbox::stop()
{
    if (door_) forget(door_->fd());
    door_.reset();
    ContainerSandbox::stop();
}

void DockerSandbox::process()
{
    ContainerSandbox::process();
    if (!door_ || !wait_for_input(door_->fd(), Clock::now())) return;
    const UniqueFd guest = door_->next_guest();
    if (!guest) return; // whoever knocks next finds the door
    forget(door_->fd());
    try {
        door_->answer(guest, *agent_, processes());
    } catch (...) { // whoever ends the session after it must not forget the door once more
        door_.reset();
        throw;
    }
    door_.reset();
}

// docker makes its groups by itself: in each hierarchy that holds a limit the container must be below the unit's.
void DockerSandbox::require_limits(const LimitsPolicy &limits)
{
    SystemdSandbox::require_limits(limits);
    const ControlGroup unit = *group();
    if (unit.is_unified) return; // processes() found it there
    for (const char *controller : {"memory", "pids", "cpu"}) {
        // A limit of which this host has no controller was refused before, when the policy says it.
        if (!is_mounted_as(std::string(control_groups) + "/" + controller, CGROUP_SUPER_MAGIC)) continue;
        const std::vector<pid_t> held = processes_below(directory_of(unit, controller));
        for (const pid_t pid : processes())
            if (std::find(held.begin(), held.end(), pid) == held.end())
                throw Failure(ExitStatus::unavailable, std::string("docker put the container outside of the session's control group (") +
                                                           controller + "), whose limits would not hold it");
    }
}

} // namespace pi_agent

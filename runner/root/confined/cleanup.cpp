// What pi-agent-cleanup runs: as a unit of the session's own when that unit stops, or as the keeper that waits for the runner's end.
#include "common/base/files.hpp"

#include "common/seams/seams.hpp"
#include "runner/as_agent/home.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/method/engine_host.hpp"

#include <fstream>

namespace pi_agent {

namespace {

// The control group of one of the session's units. Empty when it is gone, as it should be.
ControlGroup group_of(const std::string &session_id, const std::string &unit)
{
    std::ifstream own("/proc/self/cgroup");
    if (const auto group = find_sibling_group(own, cleanup_name(session_id), unit)) return *group;
    throw Failure(FailureKind::by_hand, "the unit " + cleanup_name(session_id) + " starts this program; do not run it by hand");
}

bool is_of_docker(const std::string &session_id)
{
    const UniqueFd session = try_open_session(open_sessions(), session_id);
    return session && has_name(session, docker_mark, "looking whether the session is one of docker's");
}

} // namespace

void clean_up_after_unit(const AsRoot &root, const std::string &session_id)
{
    // The unit's KillSignal= has killed all; a process that is left now came too late for it.
    fault_point("cleaning-up");
    const ControlGroup group = group_of(session_id, service_name(session_id));
    empty_group(group, in_seconds(cleanup_group_seconds));
    if (defence_is_on("gate-ends")) empty_group(group_of(session_id, gate_name(session_id)), in_seconds(cleanup_gate_seconds));
    // Nobody else removes a container whose client was killed before it started it.
    if (is_of_docker(session_id) && defence_is_on("docker:removed"))
        remove_container(root, container_name(session_id), in_seconds(cleanup_docker_seconds));
    remove_empty_groups(group);
    // A runner that lives knows more. One that is stopped keeps its record, and temporary files, which it has locked: its own end, or
    // whoever ends it, brings the rest.
    if (record_end_of_killed(root, session_id, in_seconds(cleanup_record_seconds)))
        return remove_session_with_scratch(root, session_id, cleanup_removal_seconds);
    remove_session_with_scratch(root, session_id, cleanup_removal_seconds, Leave::directory);
    record_problem(session_id,
                   "its runner lives and does not record the end; what the session mounted is gone, its record waits for the runner's end");
}

void keep_session(const AsRoot &root, const std::string &session_id)
{
    step_aside();
    char told = 0;
    ssize_t length = 0;
    do {
        length = read(STDIN_FILENO, &told, 1);
    } while (length < 0 && errno == EINTR);
    if (length == 1 || !defence_is_on("session-keeper")) return;
    // The kernel has killed what ran inside, or is doing so.
    fault_point("keeper-cleans");
    if (const auto agents = find_own_group(session_id)) empty_group(*agents, in_seconds(cleanup_group_seconds));
    if (!record_end_of_killed(root, session_id, in_seconds(cleanup_record_seconds)))
        throw Failure(ExitStatus::system_failure, "its runner was killed and still holds its record; the next sweep removes what is left");
    remove_session_with_scratch(root, session_id, cleanup_removal_seconds);
    leave_group(session_id);
    record_problem(session_id, "its runner was killed; what the session left was removed");
}

} // namespace pi_agent

// What the session's cleanup unit runs when it stops.
#include "runner/cleanup.hpp"

#include "common/absence.hpp"
#include "common/channel.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/fault_point.hpp"
#include "runner/control_group.hpp"
#include "runner/docker_command.hpp"
#include "runner/docker_daemon.hpp"
#include "runner/patience.hpp"
#include "runner/record.hpp"
#include "runner/scratch_removal.hpp"
#include "runner/session_directory.hpp"
#include "runner/session_record.hpp"

#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace pi_agent {

namespace {

// The control group of the agent's unit. Empty when it is gone, as it should be.
ControlGroup group_of_agent(const std::string &session_id)
{
    std::ifstream own("/proc/self/cgroup");
    if (const auto group = find_sibling_group(own, cleanup_name(session_id), service_name(session_id))) return *group;
    throw Failure(ExitStatus::denied, "this program is run by the unit " + cleanup_name(session_id) + ", not by hand");
}

bool is_of_docker(const std::string &session_id)
{
    const UniqueFd session = try_open_session(open_sessions(), session_id);
    return session && has_name(session, docker_mark, "looking whether the session is one of docker's");
}

} // namespace

void clean_up_after_unit(const AsRoot &root, const std::string &session_id)
{
    // The unit's own KillSignal= has killed all; whoever is left now came too late for it.
    fault_point("cleaning-up");
    const ControlGroup group = group_of_agent(session_id);
    empty_group(group, in_seconds(cleanup_group_seconds));
    // A client that was killed before it started its container leaves that to nobody.
    if (is_of_docker(session_id) && defence_is_on("docker:removed"))
        remove_container(root, container_name(session_id), in_seconds(cleanup_docker_seconds));
    remove_empty_groups(group);
    // A runner that lives knows more. One that stands still keeps its record, and temporary files, which it has locked: its own end, or
    // whoever ends it, brings the rest.
    if (record_end_of_killed(root, session_id, in_seconds(cleanup_record_seconds)))
        return remove_session_with_scratch(root, session_id, cleanup_removal_seconds);
    unmount_session_with_scratch(root, session_id, cleanup_removal_seconds);
    record_problem(session_id,
                   "its runner lives and does not record the end; what the session mounted is gone, its record waits for the runner's end");
}

} // namespace pi_agent

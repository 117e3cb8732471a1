// What the session's cleanup unit runs when it stops.
#include "runner/cleanup.hpp"

#include "common/channel.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "runner/control_group.hpp"
#include "runner/scratch_removal.hpp"
#include "runner/session_directory.hpp"
#include "runner/session_record.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 5;

// The control group of the agent's unit. Empty when it is gone, as it should be.
std::string group_of(const std::string &session_id)
{
    std::ifstream own("/proc/self/cgroup");
    if (const auto group = find_sibling_group(own, cleanup_name(session_id), service_name(session_id))) return group->path;
    throw Failure(ExitStatus::denied, "this program is run by the unit " + cleanup_name(session_id) + ", not by hand");
}

bool has_processes(const std::string &group)
{
    std::ifstream file(group + "/cgroup.procs");
    pid_t pid = 0;
    return static_cast<bool>(file >> pid);
}

// The unit's own KillSignal= has killed all; whoever is left now came too late for it. In one step where the kernel can (5.14), so that no
// fork escapes.
void kill_group(const std::string &group)
{
    if (!defence_is_on("cleanup-kills")) return;
    std::ofstream kill_all(group + "/cgroup.kill");
    if (kill_all << "1" << std::flush) return;
    std::ifstream file(group + "/cgroup.procs");
    for (pid_t pid = 0; file >> pid;)
        kill(pid, SIGKILL); // best_effort: whoever is left is counted again
}

} // namespace

void clean_up_after_unit(const AsRoot &root, const std::string &session_id)
{
    const std::string group = group_of(session_id);
    const Deadline deadline = in_seconds(patience_seconds);
    while (has_processes(group)) {
        kill_group(group);
        if (Clock::now() >= deadline)
            throw Failure(ExitStatus::system_failure, "the session still has processes; its directory is left to the next sweep");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    record_end_of_killed(root, session_id); // else it would never be: what is left then, the next sweep removes
    remove_session_with_scratch(root, session_id);
}

} // namespace pi_agent

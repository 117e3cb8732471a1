// What ExecStopPost= runs.
#include "runner/cleanup.hpp"

#include "common/channel.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/fd.hpp"
#include "runner/session_directory.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 5;

// cgroup.procs of the unit's control group, in which this process runs: version 2's hierarchy, or version 1's that systemd names
// (cgroups(7)).
std::string process_list_of(const std::string &unit)
{
    std::ifstream file("/proc/self/cgroup");
    std::string line;
    while (std::getline(file, line)) {
        const std::size_t path = line.find('/');
        if (path == std::string::npos || line.find("/" + unit, path) == std::string::npos) continue;
        if (line.compare(0, path, "0::") == 0) return "/sys/fs/cgroup" + line.substr(path) + "/cgroup.procs";
        if (line.find(":name=systemd:") < path) return "/sys/fs/cgroup/systemd" + line.substr(path) + "/cgroup.procs";
    }
    throw Failure(ExitStatus::denied, "this program is run by the unit " + unit + ", not by hand");
}

std::vector<pid_t> others_in(const std::string &process_list)
{
    std::ifstream file(process_list);
    if (!file) throw Failure(ExitStatus::system_failure, process_list + " cannot be read");
    std::vector<pid_t> pids;
    for (pid_t pid = 0; file >> pid;)
        if (pid != getpid()) pids.push_back(pid);
    return pids;
}

// The agent has its launcher's uid. When it answers the unit's TERM by killing the launcher, systemd comes here without having killed the
// rest, and after this program it would only send TERM again. The second look is for a number that has gone to somebody else meanwhile.
void kill_others(const std::string &process_list)
{
    if (!defence_is_on("cleanup-kills")) return;
    for (const pid_t pid : others_in(process_list)) {
        const UniqueFd process = UniqueFd::adopt(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        const std::vector<pid_t> now = others_in(process_list);
        if (!process || std::find(now.begin(), now.end(), pid) == now.end()) continue;
        syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0); // best_effort: whoever is left is counted again
    }
}

// systemd runs ExecStopPost= in a mount namespace like the unit's own, even with "+": what is unmounted there stays mounted on the host.
void enter_host_mount_namespace()
{
    const UniqueFd host = UniqueFd::adopt(static_cast<int>(syscall(SYS_pidfd_open, 1, 0))); // there is no /proc in that namespace
    if (!host || setns(host.get(), CLONE_NEWNS) != 0) throw_errno("entering the host's mount namespace");
}

} // namespace

void clean_up_after_unit(const AsRoot &root, const std::string &session_id)
{
    enter_host_mount_namespace();
    const std::string processes = process_list_of(service_name(session_id));
    const Deadline deadline = in_seconds(patience_seconds);
    while (!others_in(processes).empty()) {
        kill_others(processes);
        if (Clock::now() >= deadline)
            throw Failure(ExitStatus::system_failure, "the session still has processes; its directory is left to the next sweep");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    remove_session(root, session_id);
}

} // namespace pi_agent

// What ExecStopPost= runs.
#include "runner/cleanup.hpp"

#include "common/channel.hpp"
#include "common/error.hpp"
#include "runner/session_directory.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 5;

// cgroup.procs of this process's own control group: version 1's systemd hierarchy where it is mounted, else version 2's (cgroups(7)).
std::string own_process_list()
{
    std::ifstream file("/proc/self/cgroup");
    std::string unified;
    std::string line;
    while (std::getline(file, line)) {
        const std::size_t path = line.find('/');
        if (path == std::string::npos) continue;
        if (line.compare(0, path, "0::") == 0) unified = line.substr(path);
        if (line.find(":name=systemd:") != std::string::npos) return "/sys/fs/cgroup/systemd" + line.substr(path) + "/cgroup.procs";
    }
    if (unified.empty()) throw Failure(ExitStatus::system_failure, "/proc/self/cgroup cannot be read");
    return "/sys/fs/cgroup" + unified + "/cgroup.procs";
}

bool others_are_left(const std::string &process_list)
{
    std::ifstream file(process_list);
    if (!file) throw Failure(ExitStatus::system_failure, process_list + " cannot be read");
    pid_t pid = 0;
    while (file >> pid)
        if (pid != getpid()) return true;
    return false;
}

} // namespace

void clean_up_after_unit(const AsRoot &root, const std::string &session_id)
{
    const std::string processes = own_process_list();
    if (processes.find(service_name(session_id)) == std::string::npos)
        throw Failure(ExitStatus::denied, "this program is run by the unit " + service_name(session_id) + ", not by hand");
    const Deadline deadline = in_seconds(patience_seconds);
    while (others_are_left(processes)) {
        if (Clock::now() >= deadline) throw Failure(ExitStatus::system_failure, "the session still has processes; its directory is left to the next sweep");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    remove_session(root, session_id);
}

} // namespace pi_agent

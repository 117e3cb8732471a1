// Reading /proc/self/cgroup and cgroup.procs.
#include "runner/control_group.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/process_handle.hpp"
#include "runner/session_directory.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string_view>
#include <sys/vfs.h>
#include <thread>

namespace pi_agent {

const char *const control_groups = "/sys/fs/cgroup";

namespace {

constexpr std::string_view named_hierarchy = "/sys/fs/cgroup/systemd";

} // namespace

std::optional<ControlGroup> find_sibling_group(std::istream &groups, const std::string &own_unit, const std::string &sibling)
{
    const std::string own = "/" + own_unit;
    for (std::string line; std::getline(groups, line);) {
        const std::size_t path = line.find('/');
        if (path == std::string::npos || line.size() < path + own.size() || line.compare(line.size() - own.size(), own.size(), own) != 0)
            continue;
        const bool named = line.find(":name=systemd:") < path;
        if (!named && line.compare(0, path, "0::") != 0) continue;
        const std::string group = line.substr(path, line.size() - own.size() - path) + "/" + sibling;
        return ControlGroup{std::string(named ? named_hierarchy : control_groups) + group, !named};
    }
    return std::nullopt;
}

ControlGroup group_of_service(const std::string &session_id)
{
    std::ifstream own("/proc/self/cgroup");
    const auto group = find_sibling_group(own, scope_name(session_id), service_name(session_id));
    if (!group) throw Failure(ExitStatus::internal, "the runner is not in its scope");
    return *group;
}

std::string directory_of(const ControlGroup &group, const std::string &controller)
{
    return group.is_unified ? group.path : std::string(control_groups) + "/" + controller + group.path.substr(named_hierarchy.size());
}

bool is_mounted_as(const std::string &path, unsigned long type)
{
    struct statfs facts {};
    return statfs(path.c_str(), &facts) == 0 && static_cast<unsigned long>(facts.f_type) == type;
}

void kill_group(const ControlGroup &group)
{
    std::ofstream kill_all(group.path + "/cgroup.kill");
    if (kill_all << "1" << std::flush) return;
    for (const pid_t pid : processes_in(group)) {
        const UniqueFd process = open_process(pid);
        const std::vector<pid_t> still = processes_in(group); // else the number may be somebody else's by now
        if (process && std::find(still.begin(), still.end(), pid) != still.end()) signal_process(process, SIGKILL, "ending the session");
    }
}

void empty_group(const ControlGroup &group, Deadline deadline)
{
    while (!processes_in(group).empty()) {
        if (defence_is_on("cleanup-kills")) kill_group(group);
        if (Clock::now() >= deadline)
            throw Failure(ExitStatus::system_failure, "the session still has processes; its directory is left to the next sweep");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

std::vector<pid_t> processes_in(const ControlGroup &group)
{
    std::ifstream file(group.path + "/cgroup.procs");
    std::vector<pid_t> pids;
    for (pid_t pid = 0; file >> pid;)
        pids.push_back(pid);
    return pids;
}

} // namespace pi_agent

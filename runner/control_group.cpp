// Reading /proc/self/cgroup and cgroup.procs.
#include "runner/control_group.hpp"

#include "common/error.hpp"
#include "runner/session_directory.hpp"

#include <fstream>
#include <string_view>

namespace pi_agent {

namespace {

constexpr const char *hierarchies = "/sys/fs/cgroup";
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
        return ControlGroup{std::string(named ? named_hierarchy : hierarchies) + group, !named};
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
    return group.is_unified ? group.path : std::string(hierarchies) + "/" + controller + group.path.substr(named_hierarchy.size());
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

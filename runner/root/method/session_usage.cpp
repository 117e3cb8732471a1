// Reading the files of a session's control group.
#include "runner/root/method/session_usage.hpp"

#include "common/base/absence.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/kernel/unit_usage.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/session/session_directory.hpp"

#include <fstream>

namespace pi_agent {

namespace {

std::optional<std::uint64_t> read_number(const std::string &path)
{
    std::ifstream file(path);
    std::uint64_t value = 0;
    return file >> value ? std::optional<std::uint64_t>(value) : std::nullopt;
}

// The runner's number may be another process' by now: that one is not in the session's scope.
std::optional<ControlGroup> group_of_session(const std::string &session_id, pid_t runner)
{
    std::ifstream groups("/proc/" + std::to_string(runner) + "/cgroup");
    if (auto group = find_sibling_group(groups, scope_name(session_id), service_name(session_id))) return group;
    return find_own_group(session_id);
}

} // namespace

SessionUsage usage_of_session(const std::string &session_id, pid_t runner)
{
    const auto group = group_of_session(session_id, runner);
    if (!group || !path_exists(group->path)) return {};
    SessionUsage usage;
    usage.processes = processes_in(*group).size();
    usage.memory = read_number(directory_of(*group, "memory") + (group->is_unified ? "/memory.current" : "/memory.usage_in_bytes"));
    usage.cpu_usec = usage_of(*group).cpu_usec;
    return usage;
}

} // namespace pi_agent

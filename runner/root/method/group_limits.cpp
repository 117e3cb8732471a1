// Writing cgroup.subtree_control and the files of the controllers.
#include "runner/root/method/group_limits.hpp"

#include "runner/plan/limits.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/kernel/limit_controllers.hpp"

#include <fstream>

namespace pi_agent {

namespace {

constexpr std::uint64_t cpu_period_usec = 100'000;

void write_to(const std::string &file, const std::string &text)
{
    std::ofstream(file) << text << std::flush;
}

} // namespace

void limit_group(const AsRoot & /*root*/, const std::string &group, const LimitsPolicy &limits)
{
    // One at a time: a write of several is refused when one of them is missing.
    for (std::size_t slash = std::string(control_groups).size(); slash != std::string::npos; slash = group.find('/', slash + 1))
        for (const char *controller : {"+memory", "+pids", "+cpu"})
            write_to(group.substr(0, slash) + "/cgroup.subtree_control", controller);
    const std::uint64_t percent = limits.memory_share ? limits.memory_share->amount : session_memory_percent;
    write_to(group + "/memory.max", std::to_string(limits.memory ? limits.memory->amount : host_memory() / 100 * percent));
    if (limits.memory || limits.memory_share) write_to(group + "/memory.swap.max", "0"); // as of a unit: runner/plan/unit_properties.cpp
    write_to(group + "/pids.max", std::to_string(limits.tasks ? limits.tasks->amount : session_tasks));
    if (limits.cpu)
        write_to(group + "/cpu.max", std::to_string(limits.cpu->amount * (cpu_period_usec / 100)) + " " + std::to_string(cpu_period_usec));
}

} // namespace pi_agent

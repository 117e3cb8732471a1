// Counters of the kernel.
#include "runner/root/kernel/limit_events.hpp"

#include <algorithm>
#include <fstream>
#include <map>

namespace pi_agent {

namespace {

// "oom_kill 2", one a line.
std::map<std::string, std::uint64_t> counters_in(const std::string &path)
{
    std::ifstream file(path);
    std::map<std::string, std::uint64_t> counters;
    std::string name;
    for (std::uint64_t count = 0; file >> name >> count;)
        counters[name] = count;
    return counters;
}

} // namespace

LimitEvents read_limit_events(const ControlGroup &group)
{
    const std::string memory = directory_of(group, "memory");
    LimitEvents events;
    if (group.is_unified) {
        auto counters = counters_in(memory + "/memory.events");
        events.killed = counters["oom_kill"];
        events.own_memory = counters["oom"] > 0;
    } else {
        for (const auto &one : groups_below(memory)) // each counts its own
            events.killed += counters_in(one + "/memory.oom_control")["oom_kill"];
        std::uint64_t failures = 0;
        events.own_memory = std::ifstream(memory + "/memory.failcnt") >> failures && failures > 0;
    }
    // In the group of who was refused, or since Linux 6.11 in that of the limit, too.
    for (const auto &one : groups_below(directory_of(group, "pids")))
        events.refused_tasks = std::max(events.refused_tasks, counters_in(one + "/pids.events")["max"]);
    return events;
}

} // namespace pi_agent

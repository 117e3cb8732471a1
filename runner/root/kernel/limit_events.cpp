// Counters of the kernel, and the notices that they become.
#include "runner/root/kernel/limit_events.hpp"

#include "common/policy/policy_limits.hpp"
#include "runner/plan/limits.hpp"

#include <algorithm>
#include <csignal>
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

std::string said_or_default(const char *key, const std::optional<SaidLimit> &said, const std::string &otherwise)
{
    if (said) return said->text + " (limits." + key + ", " + to_string(said->where) + ")";
    return otherwise + " (the default; limits." + key + " in the policy sets another)";
}

std::string memory_notice(const LimitsPolicy &limits, const LimitEvents &events, bool agent_killed)
{
    const std::string whose = agent_killed         ? "the agent, or what it ran"
                              : events.killed == 1 ? "one of its processes, and the agent went on"
                                                   : std::to_string(events.killed) + " of its processes, and the agent went on";
    const std::string limit =
        said_or_default("memory", said_memory(limits), std::to_string(session_memory_percent) + " % of the host's memory");
    if (events.own_memory)
        return "out of memory: the session reached its limit of " + limit + ", and the kernel killed " + whose +
               "; let it do less at once (fewer parallel jobs), or ask the administrator for more";
    return "out of memory: the host, or all your sessions together, had no more, and the kernel killed " + whose +
           "; the session itself was below its limit of " + limit + "; end other sessions, or let it do less at once";
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

std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted)
{
    std::vector<std::string> notices;
    const bool killed = ended.by_signal && ended.value == SIGKILL;
    // systemd says the same of a unit that is slow to stop.
    if (limits.runtime && result == "timeout" && lasted >= std::chrono::seconds(limits.runtime->amount))
        notices.push_back("out of time: a session may last " + said_or_default("runtime", limits.runtime, "") +
                          ", and this one was ended; start pi again to go on, or ask the administrator for more");
    if (events.killed > 0 || result == "oom-kill") notices.push_back(memory_notice(limits, events, killed));
    if (events.refused_tasks > 0) {
        notices.push_back("out of processes: the session reached its limit of " +
                          said_or_default("tasks", limits.tasks, std::to_string(session_tasks)) +
                          ", or all your sessions together theirs, and " +
                          (events.refused_tasks == 1 ? "one start of a process or thread"
                                                     : std::to_string(events.refused_tasks) + " starts of processes or threads") +
                          " failed inside (EAGAIN); let it do less at once, or ask the administrator for more");
    }
    return notices;
}

} // namespace pi_agent

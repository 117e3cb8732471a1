// Notices for people, made of what the kernel counted.
#include "runner/plan/limit_notices.hpp"

#include "common/policy/policy_limits.hpp"
#include "runner/plan/limits.hpp"

#include <csignal>

namespace pi_agent {

namespace {

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

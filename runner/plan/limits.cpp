// Limits in a method's words, and how a session ended by two reports.
#include "runner/plan/limits.hpp"

#include "common/policy/policy_sections.hpp"

#include <csignal>

namespace pi_agent {

// Limits in a method's words, and the messages when a session reached one.

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
    const std::string limit = said_or_default("memory", said_memory(limits),
                                              text_in_force(limits, limit_row(&LimitsPolicy::memory_share)) + " of the host's memory");
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
    // systemd reports the same for a unit that is slow to stop.
    if (limits.runtime && result == "timeout" && lasted >= std::chrono::seconds(limits.runtime->amount))
        notices.push_back("out of time: a session may last " + said_or_default("runtime", limits.runtime, "") +
                          ", and this one was ended; start pi again to go on, or ask the administrator for more");
    if (events.killed > 0 || result == "oom-kill") notices.push_back(memory_notice(limits, events, killed));
    if (events.refused_tasks > 0) {
        notices.push_back("out of processes: the session reached its limit of " +
                          said_or_default("tasks", limits.tasks, std::to_string(in_force(limits, &LimitsPolicy::tasks))) +
                          ", or all your sessions together theirs, and " +
                          (events.refused_tasks == 1 ? "one start of a process or thread"
                                                     : std::to_string(events.refused_tasks) + " starts of processes or threads") +
                          " failed inside (EAGAIN); let it do less at once, or ask the administrator for more");
    }
    return notices;
}

SystemdFeatures systemd_features(const std::string &version)
{
    unsigned number = 0;
    const auto parsed = std::from_chars(version.data(), version.data() + version.size(), number);
    if (parsed.ec != std::errc())
        throw Failure(FailureKind::sandbox_method, "systemd reports the version " + escape_for_display(version) +
                                                       ", which does not begin with a number; compare it with: systemctl --version");
    if (number < oldest_systemd)
        throw Failure(FailureKind::sandbox_method, "this host runs systemd " + std::to_string(number) +
                                                       ", and sandbox.method systemd needs " + std::to_string(oldest_systemd) +
                                                       " or newer; ask the administrator to upgrade this host or to choose another method");
    return {number, number >= systemd_with_private_pids, number >= systemd_with_log_sockets, number >= systemd_with_identity_ids};
}

} // namespace pi_agent

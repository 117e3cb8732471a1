// Compares two reports of how the agent ended.
#include "runner/plan/sandbox_plan.hpp"

#include <csignal>

namespace pi_agent {

AgentEnded agent_end(const SandboxResult &seen, const std::optional<ExecEnded> &said, bool killed)
{
    const bool is_signal = said && said->by_signal && said->value > 0 && said->value < NSIG;
    // systemd has forgotten the process, or never saw it end (seen on 257). The unit is over, so a launcher gains nothing by lying about
    // how.
    if (seen.code == 0) {
        // Nor does it see the end of a unit that it kills itself, all at once, on a stop or a time limit (seen on 257): the signal is
        // KillSignal=.
        if (!said && (killed || seen.result == "timeout" || seen.result == "oom-kill")) return AgentEnded{true, SIGKILL};
        if (!said)
            throw Failure(ExitStatus::system_failure,
                          "nobody can say how the session ended: neither its unit nor the process inside reported it");
        return is_signal ? AgentEnded{true, said->value} : AgentEnded{false, said->value & 0xFF};
    }
    if (seen.code != CLD_EXITED) return AgentEnded{true, seen.status};
    return is_signal && seen.status == 128 + said->value ? AgentEnded{true, said->value} : AgentEnded{false, seen.status};
}

SandboxResult without_own_kill(SandboxResult seen)
{
    if (seen.code != CLD_EXITED) seen.code = 0;
    return seen;
}

} // namespace pi_agent

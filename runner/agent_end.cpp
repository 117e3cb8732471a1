// Two accounts of one end, compared.
#include "runner/agent_end.hpp"

#include <csignal>

namespace pi_agent {

AgentEnded agent_end(const ServiceResult &seen, const std::optional<ExecEnded> &said)
{
    if (seen.code != CLD_EXITED) return AgentEnded{true, seen.status};
    const bool by_signal = said && said->by_signal && said->value > 0 && said->value < NSIG && seen.status == 128 + said->value;
    return by_signal ? AgentEnded{true, said->value} : AgentEnded{false, seen.status};
}

} // namespace pi_agent

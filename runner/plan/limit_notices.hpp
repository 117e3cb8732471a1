// How a user is told of the limits that a session ran into.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/request.hpp"
#include "common/policy/policy.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pi_agent {

struct LimitEvents {
    std::uint64_t killed = 0;        // processes that the kernel killed for want of memory
    bool own_memory = false;         // the session itself was at its limit
    std::uint64_t refused_tasks = 0; // starts of processes and threads
};

// For the end of a session, in words: what happened, the limit with its place in the policy, what to do. `result` as of SandboxResult.
std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted);

} // namespace pi_agent

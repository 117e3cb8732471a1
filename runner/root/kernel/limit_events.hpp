// What a session ran into, from its control group while that is there, and how its user is told.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/request.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pi_agent {

struct LimitEvents {
    std::uint64_t killed = 0;        // processes that the kernel killed for want of memory
    bool own_memory = false;         // the session itself was at its limit
    std::uint64_t refused_tasks = 0; // starts of processes and threads
};

// Best effort: what cannot be read has not happened.
LimitEvents read_limit_events(const ControlGroup &group);

// For the end of a session, in words: what happened, the limit with its place in the policy, what to do. `result` as of SandboxResult.
std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted);

} // namespace pi_agent

// What a user is told when an agent failed whose network the policy closes: agents themselves say "Connection error", after long silence.
#pragma once

#include "common/base/request.hpp"
#include "common/policy/policy.hpp"

#include <string>

namespace pi_agent {

// A line that names the policy's key; empty where the network is open, or the agent ended well. What kept the agent from its end nobody
// here knows: it says what could not be reached, and not that this was it.
std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended);

} // namespace pi_agent

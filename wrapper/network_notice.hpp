// The message for a user whose agent failed while the policy closes its network. Agents only say "Connection error", after a long silence.
#pragma once

#include "common/base/request.hpp"
#include "common/policy/policy.hpp"

#include <string>

namespace pi_agent {

// A line that names the policy's key, or the user's own option (--pi-agent-network); empty if the network is open, or if the agent
// succeeded. Nobody here knows why the agent failed. So it says what was out of reach, not that this was the reason.
std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended);

} // namespace pi_agent

// Asks the kernel whether it holds a session's unit to the network that the policy gives it. Where systemd cannot attach its packet filter
// or may not make a network namespace, it says so in its journal and starts the unit without.
#pragma once

#include "common/identity.hpp"
#include "common/policy.hpp"

#include <string>

namespace pi_agent {

// By this process, in the session's scope, once something runs in the unit and before the agent does. Throws Failure(unavailable).
void require_network_enforced(const AsRoot &root, const NetworkPolicy &network, const std::string &session_id);

} // namespace pi_agent

// Asks the kernel whether it holds a session to the network that the policy gives it. Where systemd cannot attach its packet filter
// or may not make a network namespace, it says so in its journal and starts the unit without.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <sys/types.h>
#include <vector>

namespace pi_agent {

// Both once something runs in the session and before the agent does. They throw Failure(unavailable).
// `processes`: all of it. Before the agent that is pi-agent-exec and, for a moment, what started it.
void require_own_network(const std::vector<pid_t> &processes, const NetworkPolicy &network);
void require_packet_filters(const AsRoot &root, const ControlGroup &group, const NetworkPolicy &network);

} // namespace pi_agent

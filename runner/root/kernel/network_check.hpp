// Whether the kernel holds a session to its network and its limits.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <sys/types.h>
#include <vector>

namespace pi_agent {

// --- Asks the kernel whether it holds a session to the network that the policy gives it. Where systemd cannot attach its packet filter
// or may not make a network namespace, it says so in its journal and starts the unit without.

// Both once something runs in the session and before the agent does. They throw Failure(unavailable).
// `processes`: all of it. Before the agent that is pi-agent-exec and, for a moment, what started it.
void require_own_network(const std::vector<pid_t> &processes, const NetworkPolicy &network);
void require_packet_filters(const AsRoot &root, const ControlGroup &group, const NetworkPolicy &network);

// --- Asks the kernel whether it holds a session's unit to the limits that the policy says. Where systemd may not use a controller, it
// starts the unit without.

// Once something runs in the group, and before the agent does. Throws Failure(unavailable) unless each that is said is in force in the
// group; `cause` asks what may have kept the controller from it.
void require_limits_in(const ControlGroup &group, const LimitsPolicy &limits, const char *cause);

} // namespace pi_agent

// Asks the kernel whether it holds a session's unit to the limits that the policy says. Where systemd may not use a controller, it starts
// the unit without.
#pragma once

#include "common/policy/policy.hpp"
#include "runner/root/kernel/control_group.hpp"

namespace pi_agent {

// Once something runs in the group, and before the agent does. Throws Failure(unavailable) unless each that is said is in force in the
// group; `cause` asks what may have kept the controller from it.
void require_limits_in(const ControlGroup &group, const LimitsPolicy &limits, const char *cause);

} // namespace pi_agent

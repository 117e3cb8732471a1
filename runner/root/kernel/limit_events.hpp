// What a session ran into, from its control group while that is there.
#pragma once

#include "runner/plan/limit_notices.hpp"
#include "runner/root/kernel/control_group.hpp"

namespace pi_agent {

// Best effort: what cannot be read has not happened.
LimitEvents read_limit_events(const ControlGroup &group);

} // namespace pi_agent

// What a session's unit has used, from the kernel.
#pragma once

#include "runner/plan/unit_usage.hpp"
#include "runner/root/kernel/control_group.hpp"

namespace pi_agent {

// What is not known there (a group that is gone, control groups of version 1, a kernel before 5.19 for the memory) is left out.
UnitUsage usage_of(const ControlGroup &group);

} // namespace pi_agent

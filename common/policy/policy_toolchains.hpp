// Reading the section `toolchains` of a policy.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"

namespace pi_agent {

// What holds without the section.
ToolchainsPolicy default_toolchains();

void read_toolchains(const PolicyValue &section, Policy &policy, Problems &problems);

} // namespace pi_agent

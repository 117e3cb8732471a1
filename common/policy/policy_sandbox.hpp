// Reading the section `sandbox` of a policy, and holding the rest of the policy against the method.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"

namespace pi_agent {

void read_sandbox(const PolicyValue &section, Policy &policy, Problems &problems);

// Reports each key that the method cannot honour: nothing is ever dropped in silence.
void refuse_what_method_cannot(const Policy &policy, Problems &problems);

} // namespace pi_agent

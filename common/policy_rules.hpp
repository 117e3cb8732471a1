// Rules that hold between the values of a policy.
#pragma once

#include "common/policy.hpp"
#include "common/problems.hpp"

namespace pi_agent {

// Reports a policy that authorises nobody, leaves open whether users share an account, or gives the agent an account that is a user's.
void check_policy_rules(const Policy &policy, Problems &problems);

} // namespace pi_agent

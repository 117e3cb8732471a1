// Reads the policy's `users`: who may run the agent, where, and with what of their own.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"

namespace pi_agent {

// Appends to policy.users; what it cannot take is reported.
void read_users(const PolicyValue &section, Policy &policy, Problems &problems);

} // namespace pi_agent

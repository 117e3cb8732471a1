// Do the agents' homes that are there belong to the accounts that a policy gives the agents?
#pragma once

#include "admin/diagnose/method_check.hpp"
#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

// Reports each user whose next start would find the agent's home in other hands: after a change of agent.accounts, agent.user or run_as.
void check_homes(const Policy &policy, Problems &problems, Unverified &unverified);

} // namespace pi_agent

// Reading the section `projects` of a policy.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"

namespace pi_agent {

void read_projects(const PolicyValue &section, Policy &policy, Problems &problems);

} // namespace pi_agent

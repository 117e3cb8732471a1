// Reading the section `projects` of a policy.
#pragma once

#include "common/policy.hpp"
#include "common/policy_values.hpp"

namespace pi_agent {

void read_projects(const PolicyValue &section, Policy &policy, Problems &problems);

} // namespace pi_agent

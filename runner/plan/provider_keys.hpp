// Which model providers the policy's environment has keys for.
#pragma once

#include "common/policy/policy.hpp"

#include <set>
#include <string>

namespace pi_agent {

// Names of providers, as auth.json has them, whose key variable (as pi reads it, versions 0.73 to 0.87) is set and not empty in `env`.
std::set<std::string> providers_with_keys(const Environment &env);

} // namespace pi_agent

// Rules for environment variables that a policy sets.
#pragma once

#include "common/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// Why a policy may not set `name`: no valid name, set by pi-agent itself, or one that changes programs before they begin.
std::optional<std::string> problem_of_env_name(const std::string &name);

// Variables whose name or value looks like a secret. Not an error, but every user of the host can read the policy: `check` warns.
std::vector<Diagnostic> find_exposed_secrets(const Policy &policy);

} // namespace pi_agent

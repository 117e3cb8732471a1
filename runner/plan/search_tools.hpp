// fd and rg, with which the agent searches: it downloads what the host lacks when it starts, or waits long for a network that it may not
// use.
#pragma once

#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// For an administrator: what is missing, and which package brings it.
std::string name_package(const std::string &missing);

// Where the policy restricts the network and something is missing, nothing is downloaded, and nobody waits for it. Each layer of the
// environment may say otherwise.
void keep_from_downloading(EnvironmentInput &environment, const NetworkPolicy &network, const std::vector<std::string> &missing);

} // namespace pi_agent

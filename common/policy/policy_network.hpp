// What the policy says of the network.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"

#include <optional>

namespace pi_agent {

// `network: full`, `loopback`, `none`, or a list of ranges.
std::optional<NetworkPolicy> read_network(const PolicyValue &value, Problems &problems);

} // namespace pi_agent

// Whether sandbox.method bwrap can work here, asked at every launch before anything is mounted.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

// Throws Failure(unavailable) with the reason and the remedy.
void require_bwrap(const AsRoot &root);
// The same for the network of a policy.
void require_bwrap_network(const AsRoot &root, const NetworkPolicy &network);

} // namespace pi_agent

// Directories of pi-agent that belong to root (design section 3), made by descriptor.
#pragma once

#include "admin/changes.hpp"
#include "common/identity.hpp"
#include "common/policy.hpp"

namespace pi_agent {

// The state directory with `users` and `sessions`, all root 0711: passable to the agents' own homes, listable by nobody else.
// What one user's state holds is made by the runner at that user's first launch.
void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes);

} // namespace pi_agent

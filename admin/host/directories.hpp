// Directories of pi-agent that belong to root (docs/places.md), made by descriptor.
#pragma once

#include "admin/host/changes.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <sys/types.h>

namespace pi_agent {

// The state directory with `users`, root 0711: passable to the agents' own homes, listable by nobody else; and `sessions`, root 0700:
// what a session's temporary directories hold is shown to it by mounts (runner/root/session/scratch.hpp). The runner keeps the same modes.
// What one user's state holds is made by the runner at that user's first launch.
void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes);

// One directory of root's, whose parent is root's too.
void make_root_directory(const AsRoot &root, const std::string &path, mode_t mode, Changes &changes);

} // namespace pi_agent

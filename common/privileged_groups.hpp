// Groups whose members can reach past file permissions: an agent never carries one of them.
#pragma once

#include "common/ids.hpp"

namespace pi_agent {

// True for gid 0 and for the gids that this host gives to root, sudo, wheel, adm, disk, shadow, docker and their like.
// Throws SystemFailure when the group database fails.
bool is_privileged_group(Gid gid);

} // namespace pi_agent

// Groups that an agent never carries: members of some reach past file permissions, and members of others have a user's rights.
#pragma once

#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Membership is root by another name, or opens devices, logs and secrets that no agent may see: root, sudo, docker, disk and their like.
bool is_privileged_group(std::string_view name);

// True for gid 0 and for the gids that this host gives to such groups. Throws SystemFailure when the group database fails.
bool is_privileged_group(Gid gid);

// Groups of an agent's account through which it could become root, read what only administrators may, or have a user's rights: privileged
// ones and those that the policy authorises. By name.
std::vector<std::string> forbidden_groups_of(const Policy &policy, const Account &agent);

} // namespace pi_agent

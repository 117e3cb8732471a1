// Gives directories the set-gid bit for a session: by descriptor, and directories alone.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// The agent's account with the groups of `user` added. chmod(2) drops the set-gid bit of a directory whose group the caller does not have.
// The user's primary group is not added: the project's mount shows it as the agent's group.
Account agent_with_groups_of(const Account &agent, const Account &user);

// Answers ModeRequests at `channel` until its peer is gone. The session asks, so each request is checked as if the agent had sent it.
void serve_directory_modes(const AsUser &agent, FdRef channel);

} // namespace pi_agent

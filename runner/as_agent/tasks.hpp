// What children of the agent's account do beside the config sync: they run migration hooks, and give directories the set-gid bit.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// --- Runs one shell script as the account that this process has, and leaves none of its processes running.

struct HookCall {
    std::string script;                   // absolute path, for /bin/sh
    std::vector<std::string> environment; // NAME=value, all that it gets
    FdRef directory;                      // where it runs
    std::string purpose;                  // for people: what follows "the migration hook PATH, "
    int patience_seconds;
};

// Standard input is empty. What the script started is killed when it ends, or after its patience. `tick` is called several times a second.
// An exception from it ends the script as well, so it should throw when whoever waits for the script is gone. Throws
// Failure(system_failure) unless the script ends in time with success.
void run_hook(const AsUser &self, const HookCall &call, const std::function<void()> &tick);

// --- Gives directories the set-gid bit for a session: by descriptor, and directories alone.

// The agent's account with the groups of `user` added. chmod(2) drops the set-gid bit of a directory whose group the caller does not have.
// The user's primary group is not added: the project's mount shows it as the agent's group.
Account agent_with_groups_of(const Account &agent, const Account &user);

// Answers ModeRequests at `channel` until its peer is gone. The session asks, so each request is checked as if the agent had sent it.
void serve_directory_modes(const AsUser &agent, FdRef channel);

} // namespace pi_agent

// The files of environment variables that a policy names: the administrator's, which only root can read, and what the user's own say.
#pragma once

#include "common/decide/agent_places.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/wire/host_variables.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Every file must be there, belong to root and be readable by nobody else, with every directory above changed by root alone.
// Throws Failure(configuration) naming file and line, never a value.
std::vector<EnvAssignment> read_managed_env_files(const std::vector<PolicyPath> &files);

// The same files, without what they hold in this process: names and places, for a value that is not empty another one, and values only of
// variables that name files of certificates. What root's processes have in their memory, each child inherits.
std::vector<EnvAssignment> ask_env_names(const AsRoot &root, const std::vector<PolicyPath> &files);

// Read by a child that became the user. Throws as reading them does, and when the files do not come within some seconds.
HostVariables ask_host_env_files(const AsRoot &root, const Account &user, const std::vector<std::string> &files, const AgentPlaces &agents);

} // namespace pi_agent

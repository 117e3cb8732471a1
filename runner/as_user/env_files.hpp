// The files of environment variables that a policy names: the administrator's, which only root can read, and the user's own, read as the
// user.
#pragma once

#include "common/decide/user_paths.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/env_file.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What the user's own files say. A name that is not theirs to set is left out, and `notices` say so, each with file, line and reason.
struct HostVariables {
    std::vector<EnvAssignment> assignments;
    std::vector<std::string> notices;
};

// For root. Every file must be there, belong to root and be readable by nobody else, with every directory above changed by root alone.
// Throws Failure(configuration) naming file and line, never a value.
std::vector<EnvAssignment> read_managed_env_files(const std::vector<PolicyPath> &files);

// The same files, without what they hold in this process: names and places, for a value that is not empty another one, and values only of
// variables that name files of certificates. What root's processes have in their memory, each child inherits.
std::vector<EnvAssignment> ask_env_names(const AsRoot &root, const std::vector<PolicyPath> &files);

// For a process of the user's. A file that is missing says nothing; what is no file, cannot be read, is larger than env_file_limit or is
// not in the syntax of one is Failure(configuration); where agents can have made it so, it is left out, and `notices` say so.
HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home);

// The same from root, in a child that became the user. Throws as above, and when the files do not come within some seconds.
HostVariables ask_host_env_files(const AsRoot &root, const Account &user, const std::vector<std::string> &files, const AgentPlaces &agents);

} // namespace pi_agent

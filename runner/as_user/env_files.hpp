// The user's own files of variables that a policy names, read as the user.
#pragma once

#include "common/decide/user_paths.hpp"
#include "runner/wire/host_variables.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// For a process of the user's. A file that is missing says nothing; what is no file, cannot be read, is larger than env_file_limit or is
// not in the syntax of one is Failure(configuration); where agents can have made it so, it is left out, and `notices` say so.
HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home);

} // namespace pi_agent

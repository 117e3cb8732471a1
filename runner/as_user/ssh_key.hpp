// A key of the user's that the policy names for `git push` and `git fetch` over ssh, and the hosts that the user knows.
#pragma once

#include "common/decide/user_paths.hpp"
#include "runner/wire/ssh_files.hpp"

#include <string>

namespace pi_agent {

// For a process of the user's. `key` is absolute; `home` the user's.
SshFiles read_ssh_files(const UserPaths &paths, const std::string &key, const std::string &home);

} // namespace pi_agent

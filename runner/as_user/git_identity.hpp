// The user's name and address, as git on the host has them for this directory, and the directories that they call safe.
#pragma once

#include "common/base/channel.hpp"
#include "common/decide/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/git_identity.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// Asks the host's git, in the current directory, about the user's own files below `home`. The repository around is not asked, but decides
// which conditional includes count. Of the directories that the user calls safe, those count that concern `shown` (safe_directory).
FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline);

// A value of git's safe.directory (git-config(1)) as a session has it that shows the directory `shown`: "" (forget those before), "*", and
// what lies in `shown` or holds it; "~/" is the user's home. Nothing for a directory that is none of the session's business. Pure.
std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown);

} // namespace pi_agent

// The caller's directories that a session works in: home and temporary files.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/wire/opened.hpp"

#include <string>

namespace pi_agent {

// --- Finds, as the user, what of the home is shown to the tools inside (policy: toolchains).

// With the rights of `user`, who this process must be. Follows no symbolic link below the home: an agent that can write where one leads
// could let it lead elsewhere. A directory that a mount made the same as one around what no session is shown is a problem.
OpenedHome find_home_directories(const Account &user, const ToolchainsPolicy &toolchains);

// --- The temporary directory that a user names (--pi-agent-tmpdir), made as that user inside the root that the session mounts.

// As the caller: nothing is made that they could not make themselves. `place` beneath `root`; `mask` is the caller's umask. Throws
// Failure(denied) when it cannot be made there, or is not the caller's own directory.
void make_user_tmpdir(const Account &caller, FdRef root, const std::string &place, unsigned mask);

} // namespace pi_agent

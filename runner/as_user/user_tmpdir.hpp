// The temporary directory that a user names (--pi-agent-tmpdir), made as that user inside the root that the session mounts.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"

#include <string>

namespace pi_agent {

// As the caller: nothing is made that they could not make themselves. `place` beneath `root`; `mask` is the caller's umask. Throws
// Failure(denied) when it cannot be made there, or is not the caller's own directory.
void make_user_tmpdir(const Account &caller, FdRef root, const std::string &place, unsigned mask);

} // namespace pi_agent

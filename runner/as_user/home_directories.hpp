// Finds, as the user, what of the home is shown to the tools inside (policy: toolchains).
#pragma once

#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/wire/opened_home.hpp"

namespace pi_agent {

// With the rights of `user`, who this process must be. Follows no symbolic link below the home: an agent that can write where one leads
// could let it lead elsewhere. A directory that a mount made the same as one around what no session is shown is a problem.
OpenedHome find_home_directories(const Account &user, const ToolchainsPolicy &toolchains);

} // namespace pi_agent

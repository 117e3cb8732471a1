// The session's pty, in a devpts instance of its own: the master is for the user's wrapper, the slave for the agent (design rule 5).
#pragma once

#include "common/base/fd.hpp"
#include "common/base/request.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

// The agent's end, which is the agent's with mode 0600, where the request wants a terminal; the other end goes to the wrapper, which sets
// it up while the sandbox is built. `devpts` is the root of the session's devpts mount. Root opens both ends there and forwards no byte.
UniqueFd give_terminal(const AsRoot &root, FdRef devpts, const Account &agent, const Request &request, FdRef wrapper);

} // namespace pi_agent

// The session's pty, in a devpts instance of its own: the master is for the user's wrapper, the slave for the agent (design rule 5).
#pragma once

#include "common/account.hpp"
#include "common/fd.hpp"
#include "common/identity.hpp"
#include "common/request.hpp"

namespace pi_agent {

struct SessionTerminal {
    UniqueFd master;
    UniqueFd slave; // owned by the agent, mode 0600
};

// `devpts` is the root of the session's devpts mount. Root opens both ends there and forwards no byte.
SessionTerminal open_session_terminal(const AsRoot &root, FdRef devpts, const Account &agent, const WindowSize &window);

} // namespace pi_agent

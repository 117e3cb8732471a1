// Starts a process that outlives the runner where no systemd does: it removes what a session left whose runner was killed.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"

#include <string>

namespace pi_agent {

// Starts it: pi-agent-cleanup --when-runner-ends, a program of another name than the runner's, so that who kills that by its name does not
// kill this. While the returned descriptor is open it waits; a byte written there sends it away, and the end of this process without one
// makes it remove the session. Throws SystemFailure.
UniqueFd start_session_keeper(const AsRoot &root, const std::string &session_id);

} // namespace pi_agent

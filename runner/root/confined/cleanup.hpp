// Removes one session's mounts and directories after its unit has ended: run by a unit of its own, for when no runner is left.
#pragma once

#include "common/host/identity.hpp"

#include <string>

namespace pi_agent {

// Idempotent. Kills what is left of the unit's processes, and throws Failure when some stay.
void clean_up_after_unit(const AsRoot &root, const std::string &session_id);

// What `pi-agent-cleanup --when-runner-ends` does (runner/root/method/session_keeper.hpp): waits at its standard input, and removes the
// session when the runner ended without a word.
void keep_session(const AsRoot &root, const std::string &session_id);

} // namespace pi_agent

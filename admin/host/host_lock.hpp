// Locks of pi-agentctl: two that change the host at once would take each other's temporary files.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

// Held as long as the descriptor is open. Nobody but root can open them, so nobody else can hold them. Throws Failure(limit) when it is
// held.
UniqueFd take_apply_lock(const AsRoot &root); // of what changes the host: apply, rollback, remove
UniqueFd take_edit_lock(const AsRoot &root);  // of who edits the policy; held for as long as an editor is open

} // namespace pi_agent

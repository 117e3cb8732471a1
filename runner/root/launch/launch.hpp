// One session from an authenticated caller to the agent's end, phase by phase (docs/architecture.md).
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/root/session/record.hpp"

namespace pi_agent {

// Tells the wrapper how the agent ended. Throws Failure for everything that ends before the agent has run, which is not recorded yet then.
// Leaves nothing mounted or on disk but the agent's own state.
void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

} // namespace pi_agent

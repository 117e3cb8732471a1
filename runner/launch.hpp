// One session from an authenticated caller to the agent's end, phase by phase (design section 5).
#pragma once

#include "common/account.hpp"
#include "common/channel.hpp"
#include "common/fd.hpp"
#include "common/identity.hpp"

namespace pi_agent {

// Tells the wrapper how the agent ended. Throws Failure for everything that ends before the agent has run. Leaves nothing mounted or on
// disk but the agent's own state. `began`: before anything of the caller was looked up.
void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, Clock::time_point began);

} // namespace pi_agent

// pi-agentctl apply: makes the host what the policy says.
#pragma once

#include <ostream>

namespace pi_agent {

// Root only. Says each change on `out`; a second run has nothing to do. Throws before the first change when check finds
// anything wrong; what fails later leaves the steps before it done, and no new sudo rule.
void run_apply(bool dry_run, std::ostream &out, std::ostream &warnings);

} // namespace pi_agent

// pi-agentctl apply: makes the host what the policy says.
#pragma once

#include <ostream>

namespace pi_agent {

// Root only. Says each change on `out`; a second run has nothing to do. Throws before the first change when check finds
// anything wrong; what fails later leaves the steps before it done, and no new sudo rule.
// `try_sandbox`: at the end a canary is started as a user of the policy (admin/doctor.hpp). Throws Failure(unavailable) when that finds
// anything that is not as it is to be: all is applied then.
void run_apply(bool dry_run, bool try_sandbox, std::ostream &out, std::ostream &warnings);

} // namespace pi_agent

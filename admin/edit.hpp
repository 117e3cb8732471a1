// pi-agentctl edit: changes the policy as visudo changes sudo's rules, so that no mistake is ever in force.
#pragma once

#include <ostream>

namespace pi_agent {

// One editor at a time (Failure(limit)). The editor works on a copy beside the policy, which takes its place only when it has passed the
// check; there is no way to keep one that has not. A policy that was left as it was, or changed by somebody else meanwhile, is not written.
// Throws Failure(configuration) when the draft is given up because of its mistakes. At the end it offers to apply.
void run_edit(std::ostream &out, std::ostream &warnings);

} // namespace pi_agent

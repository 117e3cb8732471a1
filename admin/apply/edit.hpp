// pi-agentctl edit: changes the policy as visudo changes sudo's rules, so that no mistake is ever in force.
#pragma once

#include <optional>
#include <ostream>
#include <string>

namespace pi_agent {

// One editor at a time (Failure(limit)). `name` is the policy's file to change (policy_file_named), the main one without it; one that is
// not there begins. The editor works on a copy beside it, which takes its place only when the policy as a whole has passed the check with
// it; there is no way to keep one that has not. A file that was left as it was, or changed by somebody else meanwhile, is not written.
// Throws Failure(configuration) when the draft is given up because of its mistakes. At the end it offers to apply.
void run_edit(const std::optional<std::string> &name, std::ostream &out, std::ostream &warnings);

} // namespace pi_agent

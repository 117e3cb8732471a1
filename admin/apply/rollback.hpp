// pi-agentctl rollback: the policy that was applied before becomes the installed one again, and is applied.
#pragma once

#include "admin/apply/apply.hpp"

#include <ostream>

namespace pi_agent {

// Where the installed policy is not the one that was last applied, that one comes back; else the one that was applied before it. So a
// second rollback takes the first one back. Shows the difference, asks unless `yes`, and checks before anything is written. Throws Nothing
// when there is no earlier policy.
void run_rollback(bool yes, const ApplyOptions &options, std::ostream &out, std::ostream &warnings);

} // namespace pi_agent

// A session's plan as bubblewrap's arguments (bwrap(1)). Pure, so that it can be tested and audited as a table.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// `info_fd`: where bwrap tells the number of its first process inside.
std::vector<std::string> bwrap_options(const SandboxPlan &plan, int info_fd);

// What bwrap runs: pi-agent-exec as the agent, by setpriv(1).
std::vector<std::string> bwrap_command(const SandboxPlan &plan);

} // namespace pi_agent

// What a session looks like from inside, held against what it is to be: asked by pi-agent-canary in the agent's place. Unprivileged.
#pragma once

#include "runner/plan/canary_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct CanaryFinding {
    std::string what;     // "write /etc"
    std::string expected; // "refused"
    std::string seen;     // "refused (EROFS)", "done"
    bool is_right;
};

// Leaves nothing behind.
std::vector<CanaryFinding> look_around(const CanaryPlan &plan);

} // namespace pi_agent

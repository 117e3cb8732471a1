// Whose a process is by the kernel's word: its ids, its groups and its privileges.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

struct ExpectedAccount {
    Uid user;
    Gid group;
    std::vector<gid_t> groups; // at most these, and `group`
    bool no_new_privileges = true;
    bool no_capabilities = true;
};

// That of the plan's agent.
ExpectedAccount account_of(const SandboxPlan &plan);

// What is wrong with a process whose /proc/PID/status (proc(5)) this is; none where it is as it is to be. A line that is missing, is there
// twice or cannot be read is wrong, too.
std::optional<std::string> account_problem(const std::string &status, const ExpectedAccount &expected);

} // namespace pi_agent

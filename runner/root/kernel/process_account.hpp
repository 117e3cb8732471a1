// What the kernel says of a process and of this machine: accounts and processors.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <functional>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// --- Whose a process is by the kernel's word: its ids, its groups and its privileges.

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

// --- The processors that a process may use, on kernels for any number of them (sched_setaffinity(2)).

using AskForProcessors = std::function<int(pid_t, std::size_t, cpu_set_t *)>; // as sched_getaffinity(2)

// One set after the other in memory: a single one has room for 1,024, and a kernel for more answers EINVAL to a room too small for all that
// it could have. Throws SystemFailure.
std::vector<cpu_set_t> processors_of(pid_t process, const AskForProcessors &ask = sched_getaffinity);

} // namespace pi_agent

// The processors that a process may use, on kernels for any number of them (sched_setaffinity(2)).
#pragma once

#include <functional>
#include <sched.h>
#include <vector>

namespace pi_agent {

using AskForProcessors = std::function<int(pid_t, std::size_t, cpu_set_t *)>; // as sched_getaffinity(2)

// One set after the other in memory: a single one has room for 1,024, and a kernel for more answers EINVAL to a room too small for all that
// it could have. Throws SystemFailure.
std::vector<cpu_set_t> processors_of(pid_t process, const AskForProcessors &ask = sched_getaffinity);

} // namespace pi_agent

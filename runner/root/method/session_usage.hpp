// What a session that runs uses at this moment, from the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace pi_agent {

struct SessionUsage {
    std::optional<std::uint64_t> processes; // in its sandbox
    std::optional<std::uint64_t> memory;    // bytes, of them all; needs the memory controller
    std::optional<std::uint64_t> cpu_usec;  // since its start; needs control groups of version 2
};

// `runner` is the process that runs it. Nothing is known where the session has no control group of its own: before its sandbox has
// started, after it has ended, and under bwrap where root cannot write the hierarchy.
SessionUsage usage_of_session(const std::string &session_id, pid_t runner);

} // namespace pi_agent

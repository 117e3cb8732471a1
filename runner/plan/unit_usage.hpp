// What a session's unit has used.
#pragma once

#include <cstdint>
#include <optional>

namespace pi_agent {

struct UnitUsage {
    std::optional<std::uint64_t> memory_peak; // bytes
    std::optional<std::uint64_t> cpu_usec;
};

} // namespace pi_agent

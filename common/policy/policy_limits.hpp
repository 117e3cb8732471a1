// Reading the section `limits` of a policy.
#pragma once

#include "common/policy/policy_values.hpp"

namespace pi_agent {

// Below these an agent has no room to work in (docs/limits.md says what was measured).
constexpr std::uint64_t least_memory = std::uint64_t{128} << 20U;
constexpr std::uint64_t least_tasks = 32;
constexpr std::uint64_t least_cpu = 10;             // percent
constexpr std::uint64_t least_runtime = 10;         // seconds
constexpr std::uint64_t most_sessions_of_user = 64; // each costs root processes, mounts and a connection to the system bus

void read_limits(const PolicyValue &section, Policy &policy, Problems &problems);

// The one that is said, bytes or share.
const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept;

} // namespace pi_agent

// Versions of pi-agent, MAJOR.MINOR.PATCH: read, compared and written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// Later numbers count less; compares as numbers do.
using Version = std::array<std::uint32_t, 3>;

// Empty unless it is three decimal numbers without leading zeros, at most nine digits each, and nothing else.
std::optional<Version> parse_version(std::string_view text) noexcept;

std::string to_string(const Version &version);

// The version of this build.
Version running_version();

} // namespace pi_agent

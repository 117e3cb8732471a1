// Landlock for the session (landlock(7)): no signals to and no abstract sockets of processes outside, and no files but those of the view.
#pragma once

#include "common/base/channel.hpp"

#include <array>

namespace pi_agent {

// File system (Linux 5.19): only what is beneath "/" as seen here, and the regular files and devices among `stdio`, so that a directory
// descriptor that somebody sends over a socket leads nowhere. Scopes (Linux 6.12). What the kernel lacks, or a filter around this host
// withholds, is left out (docs: what is needed). Throws Failure when the kernel has them and they cannot be set.
struct LandlockInForce {
    bool at_all;
    bool scopes;
};
LandlockInForce restrict_with_landlock(const std::array<UniqueFd, 3> &stdio);

// For the agent, between fork and exec: puts it below the launcher, in a domain of its own that denies nothing more. A process can trace
// only its own domain and those below, so the launcher is out of reach, by any call that looks into another process. True where there is no
// Landlock, false with errno where it fails.
bool stand_below_launcher() noexcept;

// For people: landlock_is_there, or why a session here goes without.
constexpr const char *landlock_is_there = "there";
std::string landlock_here();

} // namespace pi_agent

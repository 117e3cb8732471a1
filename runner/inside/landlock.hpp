// Landlock for the session (landlock(7)): no signals to and no abstract sockets of processes outside, and no files but those of the view.
#pragma once

#include "common/base/fd.hpp"

#include <array>
#include <string>

namespace pi_agent {

// File system (Linux 5.19): only what lies beneath "/" as seen here, and the regular files and devices among `stdio`, so that a directory
// descriptor that somebody sends over a socket leads nowhere. Scopes (Linux 6.12). What the kernel lacks, or a filter around this host
// keeps from it, is left out (docs: what is needed); false when that includes the scopes. Throws Failure when the kernel has them and they
// cannot be set.
bool restrict_with_landlock(const std::array<UniqueFd, 3> &stdio);

// For people: landlock_is_there, or why a session here goes without.
constexpr const char *landlock_is_there = "there";
std::string landlock_here();

} // namespace pi_agent

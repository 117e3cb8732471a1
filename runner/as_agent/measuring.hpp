// How much disk a directory takes with all that is in it, measured with the rights of its owner.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// In bytes on disk. A file with several names counts once, other file systems and what the owner cannot read do not. Sends its progress to
// `channel`.
std::uint64_t measure_tree(const AsUser &owner, FdRef channel, FdRef top);

} // namespace pi_agent

// Makes the places in the agent's home at which something of its user's home is shown.
#pragma once

#include "common/base/fd.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace pi_agent {

// As the agent; `places` relative to the home. Returns which of the first `looked_at` hold something of the agent's own, beside what
// `defaults` gives every home: that is hidden from now on.
std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at);

} // namespace pi_agent

// Reads single files of the host's /etc with the agent's rights: by whatever links and owners they are reached on this host, the agent gets
// what its account may read there, and root opens none.
#pragma once

#include "runner/wire/etc_file.hpp"

#include <cstddef>
#include <string>

namespace pi_agent {

constexpr std::size_t host_file_limit = std::size_t{1} << 20U; // bytes of one; what is larger is left out and told

// As the agent; `name` below /etc. What cannot be read is as good as not there.
EtcFile read_etc_file(const std::string &name);

} // namespace pi_agent

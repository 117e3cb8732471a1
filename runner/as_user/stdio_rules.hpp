// Which descriptors a caller may hand to the agent as stdin, stdout and stderr (design rule 4).
#pragma once

#include "common/base/fd.hpp"
#include "common/base/request.hpp"

#include <array>
#include <string>

namespace pi_agent {

// Throws Failure(denied) unless each is a FIFO, regular file, socket, or /dev/null, /dev/zero or /dev/full: a directory reaches host
// files through "..", an O_PATH descriptor is a directory in disguise, and a terminal can be typed into.
// Those that are on the user's terminal did not come: the session's own takes their place.
void check_stdio(const std::array<UniqueFd, 3> &stdio, const OnTerminal &on_terminal);

// As the caller: lets the agent open their own anonymous pipes by name (/dev/stdout, /dev/stderr), for what it may do with them anyway.
// Files keep the modes that the caller gave them.
void let_pipes_be_opened(const std::array<UniqueFd, 3> &stdio);

} // namespace pi_agent

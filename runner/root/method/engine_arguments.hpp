// The command line of a container engine on its way from the runner to the first program of the session's unit: a file of NUL-terminated
// texts, because a property of a unit has room for no comma.
#pragma once

#include "common/base/fd.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// A file in memory with them.
UniqueFd write_engine_arguments(const std::vector<std::string> &arguments);

// What it was given. Throws Failure(denied) where `fd` is no such file: the program was run by hand.
std::vector<std::string> read_engine_arguments(FdRef fd);

} // namespace pi_agent

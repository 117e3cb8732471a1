// The command line of a container engine on its way from the runner (write_arguments() in sandbox.hpp).
#pragma once

#include "common/base/channel.hpp"

namespace pi_agent {

// The arguments that the first program of the unit was given. Throws Failure(denied) where `fd` is not such a file: the program was run by
// hand.
std::vector<std::string> read_engine_arguments(FdRef fd);

} // namespace pi_agent

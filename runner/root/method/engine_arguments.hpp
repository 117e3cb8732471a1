// The command line of bwrap or of a container engine on its way from the runner: a file of NUL-terminated texts. Every user can read an
// argv, and a property of a unit cannot hold a comma.
#pragma once

#include "common/base/fd.hpp"

#include <vector>

namespace pi_agent {

// Writes them into a file in memory; `program` names it, for messages too. Throws SystemFailure.
UniqueFd write_arguments(const std::string &program, const std::vector<std::string> &arguments);

// The arguments that the first program of the unit was given. Throws Failure(denied) where `fd` is not such a file: the program was run by
// hand.
std::vector<std::string> read_engine_arguments(FdRef fd);

// Call it before that program becomes the engine: standard input and output become /dev/null, and every descriptor above `last` is closed.
// Throws SystemFailure.
void keep_descriptors_to(int last);

} // namespace pi_agent

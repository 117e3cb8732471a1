// The command line of bwrap or of a container engine on its way from the runner: a file of NUL-terminated texts, because every user can
// read an argv, and a property of a unit has room for no comma.
#pragma once

#include "common/base/fd.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// A file in memory with them; `program` names it, for messages too. Throws SystemFailure.
UniqueFd write_arguments(const std::string &program, const std::vector<std::string> &arguments);

// The arguments that the first program of the unit was given. Throws Failure(denied) where `fd` is not such a file: the program was run by
// hand.
std::vector<std::string> read_engine_arguments(FdRef fd);

// What that program becomes the engine with: nothing as standard input and output, and no descriptor above `last`. Throws SystemFailure.
void keep_descriptors_to(int last);

} // namespace pi_agent

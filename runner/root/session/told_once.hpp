// Notices that would be the same at every start: told once, or once for each place, and again when they change.
#pragma once

#include "runner/root/session/state_directory.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What of `notices` is to be told now: all of them, or nothing where the last start had just these about `about` (a file of the user's
// meta). What was away at a start and is back is told again: somebody had mended it. With `always`, all of them.
std::vector<std::string> untold(const StateDirectory &state, const char *about, std::vector<std::string> notices, bool always);

// The same, once for each `place`: all of them, or nothing where any start said just that of this place.
std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always);

} // namespace pi_agent

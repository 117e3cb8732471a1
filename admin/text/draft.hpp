// Reading a policy that somebody wants judged.
#pragma once

#include <string>

namespace pi_agent {

// The text of a regular file, at most one byte more than a policy may have. Nobody need trust its directory, for it is only data: what is
// installed is read by load_policy, which does not take a user's. Throws SystemFailure, or Failure (configuration) for what is no file.
std::string read_draft(const std::string &path);

} // namespace pi_agent

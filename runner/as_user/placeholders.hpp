// What stands in a project for a protected path that is not there, so that the agent cannot make it: made and removed as the user, and
// without effect where it is left (after a power cut): a later session in the same repository takes it as its own.
#pragma once

#include "common/base/fd.hpp"
#include "runner/as_user/git_paths.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// Makes `path` (relative to `top`, its parent there) unless something is there. False where nobody with the user's rights can; throws
// Failure(configuration) where the user only would have to give themselves the right, because the agent could do that too.
bool make_placeholder(FdRef top, const std::string &path, Standin standin);

// Which placeholder lies at `path`; none where there is none: a file with our own text, or a directory with our own mode.
std::optional<Standin> find_placeholder(FdRef top, const std::string &path);

// Removes it if it still is one, is empty, and no session has it mounted.
void remove_placeholder(FdRef top, const std::string &path);

} // namespace pi_agent

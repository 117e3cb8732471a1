// What `projects.mask` hides in a project: found by walking it, in a child that is the user.
#pragma once

#include "common/policy/policy.hpp"
#include "runner/as_user/shown_path.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct MaskedPaths {
    std::vector<std::string> paths; // relative to the top; a directory stands for all in it
    std::vector<std::string> notices;
};

// Links are neither masked nor followed, `.git` is not entered. A directory of the user's that the user may not search is masked whole.
// Throws Failure(limit) when the project is too large to be searched, or too much is found: never an incomplete answer.
MaskedPaths find_masked(const GuardedTree &tree, const std::vector<PolicyPath> &patterns);

} // namespace pi_agent

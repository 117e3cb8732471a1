// Resolves a project root as its user: every step is opened with that user's rights, and no symbolic link that the user could change is
// followed.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <variant>

namespace pi_agent {

struct ResolvedRoot {
    std::string path; // canonical, from the descriptor
    UniqueFd fd;      // O_PATH directory
};

struct RootProblem {
    Position where; // of the root in the policy
    std::string text;
};

// Runs with the rights of `user` (the caller must be that user: the wrapper, or a child that became them).
// Refused: "/", a home directory itself (of `user` or of any account that shares it), what does not exist or is no directory,
// a symbolic link in a directory or owned by anyone other than root on the way, ".." components.
std::variant<ResolvedRoot, RootProblem> resolve_root(const RootSpec &root, const Account &user);

// Text only: "~" and "~/x" become the home of `user`; anything else must be absolute. Shared with parse-time checks.
std::string expand_home(const std::string &text, const Account &user);

} // namespace pi_agent

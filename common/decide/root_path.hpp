// Opens project roots along the policy's paths, and finds what leads out of them.
#pragma once

#include "common/decide/user_paths.hpp"

#include <functional>

namespace pi_agent {

// --- Resolves a project root as its user: it opens every step with that user's rights, and follows no symlink that the user could change.

struct ResolvedRoot {
    std::string path; // canonical, from the descriptor
    UniqueFd fd;      // O_PATH directory
};

struct RootProblem {
    Position where; // of the root in the policy
    std::string text;
    bool is_gone = false; // it does not exist
};

// Runs with the rights of `user` (the caller must be that user: the wrapper, or a child that became them).
// Refuses "/", a home directory itself (of `user` or of any account that shares it), and what does not exist or is not a directory. Also
// refuses ".." components, and a symlink on the way that belongs to anyone but root or is in such a directory.
std::variant<ResolvedRoot, RootProblem> resolve_root(const RootSpec &root, const Account &user);

// Refuses every start of a user for roots that were not found: any that may not be absent, and all of them. Of each root of the rules what
// is wrong with it, or nothing. Throws PolicyError(user_root).
void require_roots(const AccessRules &rules, const std::vector<std::optional<RootProblem>> &problems);

// Each root of the rules, in their order; none where it may be absent. Throws PolicyError for any other that cannot be used, and if there
// is no root at all. Runs with the rights of `user`, as resolve_root does.
std::vector<std::optional<ResolvedRoot>> resolve_roots(const AccessRules &rules, const Account &user);

// Text only: "~" and "~/x" become the home of `user`; anything else must be absolute. Shared with parse-time checks.
std::string expand_home(const std::string &text, const Account &user);

} // namespace pi_agent

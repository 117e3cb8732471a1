// Opens project roots along the policy's paths, and finds what leads out of them.
#pragma once

#include "common/as_user/user_paths.hpp"

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

// Whether its user can start in other roots without this one: it does not exist, and no rules of its own have to hold in it. Those would
// have to as soon as somebody makes it, maybe inside of another root, in a session that began before.
bool may_be_absent(const RootSpec &root, bool is_gone) noexcept;

// Refuses every start of a user for roots that were not found: any that may not be absent, and all of them. Of each root of the rules what
// is wrong with it, or nothing. Throws PolicyError(user_root).
void require_roots(const AccessRules &rules, const std::vector<std::optional<RootProblem>> &problems);

// Each root of the rules, in their order; none where it may be absent. Throws PolicyError for any other that cannot be used, and if there
// is no root at all. Runs with the rights of `user`, as resolve_root does.
std::vector<std::optional<ResolvedRoot>> resolve_roots(const AccessRules &rules, const Account &user);

// Text only: "~" and "~/x" become the home of `user`; anything else must be absolute. Shared with parse-time checks.
std::string expand_home(const std::string &text, const Account &user);

// --- What a start does not follow: links out of places where agents write, in what it reads as the user.

// Everything that a start reads as its user: the config directory, the directory of skills, files of variables, key, known hosts, git's own
// files. Absolute.
std::vector<std::string> paths_read_as_user(const Policy &policy, const AccessRules &rules, const Account &user);

// What is left out of these paths and everything below them, each as a text for people: its name, and the reason. Calls `go_on` before each
// entry.
std::set<std::string> find_links_out(const UserPaths &paths, const std::vector<std::string> &tops, const std::function<bool()> &go_on);

} // namespace pi_agent

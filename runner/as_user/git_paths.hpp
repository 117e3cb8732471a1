// Which paths of a git repository make git run something: what `protect: default` protects. In a child that is the user.
#pragma once

#include "runner/as_user/shown_path.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// What to put in the place of a path that is not there, so that nobody inside can make it.
enum class Standin {
    none,      // git reads it only where it is there already, or what is above it would have to be made as well
    comment,   // a file that says nothing to git
    commondir, // a file that names the very directory that it lies in
    directory,
};

struct GuardedPath {
    std::string base; // canonical directory, relative to the top
    std::string path; // relative to that; may lead through links
    Standin standin = Standin::none;
    bool is_way = false; // leads to what is protected: of it only the links, and what is no directory
    bool stays = false;  // where it is a directory: it may be written to, and not renamed or removed
};

// Every directory from the top down to `below` that has an entry `.git`, whatever that is: git passes over one that it does not take for a
// repository, and an agent can make such a one inside of the real repository.
std::vector<std::string> repositories_above(const GuardedTree &tree, const std::string &below);

// Of each of `repositories` alone, as far as it lies in this tree: its git directory, those of its submodules and worktrees, and the `.git`
// files that lead there. Throws Failure(limit) where that are more than `most`, and Failure(configuration) for what git reads there and the
// user cannot: its owner could change that inside, and what it leads to would not be protected.
std::vector<GuardedPath> git_executing_paths(const GuardedTree &tree, const std::vector<std::string> &repositories, std::size_t most);

// The same for a tree that is a git directory itself: of a repository, or a worktree's own.
std::vector<GuardedPath> gitdir_executing_paths(const GuardedTree &tree, std::size_t most);

// "gitdir: PATH" of a `.git` file; none where the text has none.
std::optional<std::string> gitdir_in(const std::string &text);

} // namespace pi_agent

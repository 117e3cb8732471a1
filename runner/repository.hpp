// Which git repository a working directory belongs to, and where git keeps that repository's data: found as its user.
#pragma once

#include "common/fd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// A directory of git's that a repository's `.git` file names (gitrepository-layout(5)).
struct GitDirectory {
    UniqueFd directory;  // O_PATH; none where it cannot be opened
    std::string told;    // as the file names it
    std::string problem; // why it is not to be believed; empty where it names the repository in turn
};

struct Repository {
    UniqueFd top;                        // O_PATH: the nearest directory, from the working directory up, that has an entry `.git`
    std::vector<GitDirectory> elsewhere; // of a worktree, a submodule or a separate git directory: its own, then the common one
};

// Both run with the user's rights: `.git` and what it names are anybody's text, and an agent may have written it. So a git directory is
// believed only where it names this repository in turn (a worktree's `gitdir`, a submodule's core.worktree), which an agent that never saw
// it cannot have brought about. None where no directory up to the file system's own top has a `.git`.
std::optional<Repository> find_repository(FdRef cwd);

// The value of core.worktree in the text of a git configuration; empty where there is none.
std::string worktree_of_config(const std::string &text);

} // namespace pi_agent

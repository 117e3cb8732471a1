// Which git repository a working directory belongs to, and where git keeps that repository's data: found as its user.
#pragma once

#include "common/base/fd.hpp"
#include "runner/root/errand/child.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// A directory of git's that a repository's `.git` file names (gitrepository-layout(5)).
struct GitDirectory {
    UniqueFd directory;  // O_PATH; none where it cannot be opened
    std::uint64_t mount; // that it lies in; root asks no file system of the user's, which need not answer
    std::string told;    // as the file names it
    std::string problem; // why it is not to be believed; empty where it names the repository in turn
};

struct Repository {
    UniqueFd top;                        // O_PATH: the nearest directory, from the working directory up, that has an entry `.git`
    std::uint64_t mount;                 // that it lies in
    std::vector<GitDirectory> elsewhere; // of a worktree, a submodule or a separate git directory: its own, then the common one
};

// Both run with the user's rights: `.git` and what it names are anybody's text, and an agent may have written it. So a git directory is
// believed only where it names this repository in turn (a worktree's `gitdir`, a submodule's core.worktree) and what is shown has what git
// wants of a git directory: an agent that never saw it cannot have brought about both. None where no directory up to the file system's own
// top has a `.git`.
std::optional<Repository> find_repository(FdRef cwd);

// From the child to its parent; what arrives has no descriptors but those that were sent.
void send_repository(FdRef channel, const std::optional<Repository> &repository);
std::optional<Repository> receive_repository(Child &child);

} // namespace pi_agent

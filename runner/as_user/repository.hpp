// Which git repository a working directory belongs to, and where git keeps that repository's data: found as its user.
#pragma once

#include "runner/wire/opened.hpp"

#include <optional>

namespace pi_agent {

// Both run with the user's rights: `.git` and what it names are anybody's text, and an agent may have written it. So a git directory is
// believed only where it names this repository in turn (a worktree's `gitdir`, a submodule's core.worktree) and what is shown has what git
// wants of a git directory: an agent that never saw it cannot have brought about both. None where no directory up to the file system's own
// top has a `.git`.
std::optional<Repository> find_repository(FdRef cwd);

} // namespace pi_agent

// Which paths of a git repository make git run something: what `protect: default` protects. In a child that is the user.
#pragma once

#include "common/base/fd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// --- Where a path in the shown project really leads: its links followed by hand and never out of the project.

// A tree that the agent is shown, as its search sees it.
struct GuardedTree {
    FdRef top;        // O_PATH, in the host's mount namespace
    std::string path; // canonical, on the host
};

struct ShownPath {
    enum class Kind {
        directory,
        other,   // a file, or anything else that is no directory and no link
        missing, // as far as `path` it is there, and nothing has the name of `rest`'s first component
        outside, // leads out of the project
        hidden,  // on another file system that is mounted there, which the agent is not shown
        closed,  // `path` is a directory of the user's that the user may not enter: who owns it may open it at any time
        unclear, // may not be looked at by the user, or has no end
    };
    Kind kind = Kind::unclear;
    std::string path;               // of what was found, canonical and relative to the top; any bytes
    std::string rest;               // where it is missing: what does not exist below `path`
    std::vector<std::string> links; // symbolic links on the way, canonical themselves
};

// Whether `path` (canonical, relative to the top) is a directory of this process' account: who owns it may change its rights at any time.
bool is_own_directory(const GuardedTree &tree, const std::string &path);

// Follows `path`, which is relative to `base` (canonical, relative to the top, a directory) or absolute, as a program inside would.
ShownPath find_shown(const GuardedTree &tree, const std::string &base, const std::string &path);

// --- Which paths make git run something.

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
    bool is_way = false;   // leads to what is protected: of it only the links, and what is no directory
    bool stays = false;    // where it is a directory: it may be written to, and not renamed or removed
    bool is_inner = false; // of a submodule or worktree that the session was not started in: there may be hundreds
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

// What a small regular file of a tree says, its links followed within it; none when there is no such file. `path` is relative to `base`.
// Throws Failure(configuration) for one that cannot be read.
std::optional<std::string> small_text(const GuardedTree &tree, const std::string &base, const std::string &path);

// The same of a file in the git directory of `repository` that all of its worktrees share, as far as that lies in this tree.
std::optional<std::string> shared_git_text(const GuardedTree &tree, const std::string &repository, const std::string &name);

// "gitdir: PATH" of a `.git` file; none where the text has none.
std::optional<std::string> gitdir_in(const std::string &text);

// --- What stands in a project for a protected path that is not there, so that the agent cannot make it: made and removed as the user, and
// without effect where it is left (after a power cut): a later session in the same repository takes it as its own.

// Makes `path` (relative to `top`, its parent there) unless something is there. False where nobody with the user's rights can; throws
// Failure(configuration) where the user only would have to give themselves the right, because the agent could do that too.
bool make_placeholder(FdRef top, const std::string &path, Standin standin);

// Which placeholder lies at `path`; none where there is none: a file with our own text, or a directory with our own mode.
std::optional<Standin> find_placeholder(FdRef top, const std::string &path);

// Removes it if it still is one, is empty, and no session has it mounted.
void remove_placeholder(FdRef top, const std::string &path);

} // namespace pi_agent

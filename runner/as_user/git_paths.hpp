// What of a git repository makes git run something, and what its files ask of git. In a child that is the user.
#pragma once

#include "common/base/channel.hpp"

namespace pi_agent {

// Which paths of a git repository make git run something: what `protect: default` protects. In a child that is the user.

// --- Where a path in the shown project really leads: follows its symlinks by hand and never out of the project.

// A tree that the agent is shown, as its search sees it.
struct GuardedTree {
    FdRef top;        // O_PATH, in the host's mount namespace
    std::string path; // canonical, on the host
};

struct ShownPath {
    enum class Kind {
        directory,
        other,   // a file, or anything else except a directory or a symlink
        missing, // `path` exists, but it has no entry for the first component of `rest`
        outside, // leads out of the project
        hidden,  // on another file system that is mounted there, which the agent is not shown
        closed,  // `path` is a directory of the user's that the user may not enter: its owner may open it at any time
        unclear, // the user may not look at it, or its symlinks have no end
    };
    Kind kind = Kind::unclear;
    std::string path;               // of what was found, canonical and relative to the top; any bytes
    std::string rest;               // where it is missing: what does not exist below `path`
    std::vector<std::string> links; // symlinks on the way, canonical themselves
};

// Whether `path` (canonical, relative to the top) is a directory of this process' account: its owner may change its mode at any time.
bool is_own_directory(const GuardedTree &tree, const std::string &path);

// Follows `path`, which is relative to `base` (canonical, relative to the top, a directory) or absolute, as a program inside would.
ShownPath find_shown(const GuardedTree &tree, const std::string &base, const std::string &path);

// --- Which paths make git run something.

// What to put where a path is missing, so that nobody inside can make it.
enum class Standin {
    none,      // git reads it only where it already exists, or its parent would have to be made as well
    comment,   // a file that says nothing to git
    commondir, // a file that names the directory that holds it
    directory,
};

struct GuardedPath {
    std::string base; // canonical directory, relative to the top
    std::string path; // relative to that; may lead through links
    Standin standin = Standin::none;
    bool is_way = false;   // leads to what is protected: only its symlinks, and what is not a directory, are guarded
    bool stays = false;    // for a directory: it may be written to, but not renamed or removed
    bool is_inner = false; // of a submodule or worktree that the session was not started in: there may be hundreds
};

// Every directory from the top down to `below` that has an entry `.git`, whatever that is. git passes over one that it does not take for a
// repository, and an agent can make such a one inside the real repository.
std::vector<std::string> repositories_above(const GuardedTree &tree, const std::string &below);

// Takes only these repositories, as far as each is in this tree: its git directory, the git directories of its submodules and worktrees,
// and the `.git` files that lead there. Throws Failure(limit) for more than `most` paths. Throws Failure(configuration) for a file that git
// reads there and the user cannot: its owner could change it inside, and what it leads to would not be protected.
std::vector<GuardedPath> git_executing_paths(const GuardedTree &tree, const std::vector<std::string> &repositories, std::size_t most);

// The same for a tree that is a git directory itself: of a repository, or a worktree's own.
std::vector<GuardedPath> gitdir_executing_paths(const GuardedTree &tree, std::size_t most);

// The content of a small regular file of a tree, symlinks followed within the tree; none when there is no such file. `path` is relative to
// `base`. Throws Failure(configuration) for one that cannot be read.
std::optional<std::string> small_text(const GuardedTree &tree, const std::string &base, const std::string &path);

// The same for a file in the git directory of `repository` that all of its worktrees share, as far as the file is in this tree.
std::optional<std::string> shared_git_text(const GuardedTree &tree, const std::string &repository, const std::string &name);

// Reads "gitdir: PATH" of a `.git` file; none where the text has no such line.
std::optional<std::string> gitdir_in(const std::string &text);

// --- Placeholders for protected paths that do not exist in a project, so that the agent cannot make them. They are made and removed as the
// user. One that is left behind (after a power cut) has no effect, and a later session in the same repository takes it over.

// Makes `path` (relative to `top`, its parent exists) unless something is there. False where nobody with the user's rights can make it.
// Throws Failure(configuration) where the user would only have to give themselves permission, because the agent could do that too.
bool make_placeholder(FdRef top, const std::string &path, Standin standin);

// Which placeholder is at `path`: a file with our own text, or a directory with our own mode. None for anything else.
std::optional<Standin> find_placeholder(FdRef top, const std::string &path);

// Removes it if it still is one, is empty, and no session has it mounted.
void remove_placeholder(FdRef top, const std::string &path);

// What the files of a repository ask of git that a session may not be able to do: signing, and filters that start programs.
struct RepositorySettings {
    std::optional<bool> signs;        // commits or tags, where its own settings say so
    std::vector<std::string> filters; // that attributes name and its own settings do not define, each once
};

// In a child that is the user. Agents may have written all of it: it is read as content, within `tree`, and no git runs. `below` is the
// working directory; `git_directory` the repository's, where that is another tree. Attributes count from the repository's top down to
// `below`: looking through the whole tree costs too much. Throws Failure for what cannot be read.
RepositorySettings read_repository_settings(const GuardedTree &tree, const std::string &repository, const std::string &below,
                                            const GuardedTree *git_directory);

// The filters that a file of attributes names (gitattributes(5)).
std::vector<std::string> filters_of_attributes(std::string_view text);

} // namespace pi_agent

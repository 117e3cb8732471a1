// Opens paths step by step, so that no link leads anywhere else: below a directory, or where only root can have written. And the commands
// that messages name for such files.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/text.hpp"

namespace pi_agent {

// --- File operations beneath a directory whose content an attacker can rearrange at any moment: follows no link, and reaches nothing above
// it.

// Opens `path` (relative, components separated by '/') beneath `top`, following no symlink (openat2(2), RESOLVE_BENEATH). `flags` as
// for open(2). Throws SystemFailure; ELOOP or EXDEV mean that something on the way is a link. With O_PATH it opens a link at the end
// itself.
UniqueFd open_beneath(FdRef top, const std::string &path, int flags);

// The same, but empty if it cannot be opened (errno says why).
UniqueFd find_beneath(FdRef top, const std::string &path, int flags) noexcept;

// The same for callers that conclude something from its absence. Throws SystemFailure if this process or host has no descriptor or memory
// left, which proves nothing.
UniqueFd look_beneath(FdRef top, const std::string &path, int flags);

// Opens the directory `name` in `parent`, and gives its owner all rights back. The agent may have removed them, as module caches do, and
// without them nothing in it can be replaced. For the owner; others get what they may. Empty if it cannot be opened (errno).
UniqueFd try_take_directory(FdRef parent, const std::string &name);

// Opens a directory that this process' account owns, O_RDONLY, and gives the owner's missing rights back to every component. Empty if there
// is no such directory, or a link on the way (errno says which).
UniqueFd find_own_directory_beneath(FdRef top, const std::string &path);

// Makes every component of `path` a directory, and replaces anything else. Returns the last one, O_RDONLY.
UniqueFd ensure_directory_beneath(FdRef top, const std::string &path);

// The entries of a directory, in no order, without "." and "..". `what` names it in errors.
std::vector<std::string> names_in(FdRef directory, const std::string &what = "a directory");

// Whether one of them matches; stops at the first.
bool find_name(FdRef directory, const std::function<bool(const std::string &name)> &satisfies, const std::string &what = "a directory");

// Renames `name` to a free "name.kept-XXXXXXXX" beside it, which is returned: what the agent made is not deleted.
std::string set_aside(FdRef directory, const std::string &name);

// "a/b/c" -> {"a/b", "c"}; {"", "c"} without a slash.
std::pair<std::string, std::string> split_last(const std::string &path);

// --- Walks an absolute path by descriptor, one component at a time, so that it judges each step before the next.

// One opened step of a walk.
struct PathStep {
    std::string path;      // as walked, with followed links replaced by their targets
    UniqueFd fd;           // O_PATH; of the link itself if it is a symlink
    struct stat status {}; // of `fd`
};

// Whether it belongs to root, and nobody else may write there.
inline bool only_root_can_change(const PathStep &step) noexcept
{
    return step.status.st_uid == 0 && (step.status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The kernel's own text for the place of a descriptor: canonical, without symlinks. Empty if this mount namespace does not have it.
std::string kernel_path(FdRef fd);

// The same, but throws Failure(denied) with a message for the user whose working directory it is.
std::string path_of_directory(FdRef fd);

// The target of the symlink that is open as `fd` (O_PATH); `path` is for messages. Never empty. Throws SystemFailure.
std::string link_target(FdRef fd, const std::string &path);

constexpr int most_links = 40; // that a walk follows, like the kernel's limit

// One step down, not through a link (O_PATH), for openat(2)'s first argument. Empty if it cannot be opened (errno).
UniqueFd open_step(int directory, const std::string &name) noexcept;

// The path of that step, or for ".." of the directory above.
std::string path_of_step(const std::string &directory, const std::string &name);

// Gets `entry` and its parent directory ("/" is its own parent) before the walk goes on. Throws to refuse.
using StepJudge = std::function<void(const PathStep &holder, const PathStep &entry)>;

// Opens `path` and returns its last step, which is never a symlink. Follows a link that `judge` accepts.
// Throws SystemFailure naming the step that could not be opened.
PathStep walk_path(const std::string &path, const StepJudge &judge);

// --- Commands in messages. Administrators paste them as root, so a message has one only if it can do no harm: for the product's own files
// and accounts. The host, a user or an attacker may have chosen everything else, which gets words.

// "run: COMMAND PATH" if the path is in the product's own directories, has no link on the way, and is a directory or a file with a single
// name; otherwise `otherwise`.
std::string command_on(const std::string &command, const std::string &path, const std::string &otherwise);

// "run: WORDS" if pi-agent makes `account`, which they change, and no word needs a quote; otherwise `otherwise`.
std::string command_about(const std::string &account, const std::vector<std::string> &words, const std::string &otherwise);

// A user's name as a word of a command: in quotes if a shell would read something else (CORP\alice).
std::string name_as_word(const std::string &name);

// --- Opens and reads files that only root can have written: every directory and link on the way belongs to root and is not writable by
// others.

// Opens an absolute path component by component; it follows a symlink only if root owns the link and its directory.
// `flags` are open(2) flags for the last component (O_CLOEXEC is added). `what` names it in errors, e.g. "policy".
// Throws Failure(configuration) naming what someone other than root can change, or a link to nothing; SystemFailure if it does not exist.
UniqueFd open_trusted(const std::string &path, int flags, const std::string &what);

// The target of a trusted path.
struct ResolvedPath {
    std::string canonical;                    // without symlinks
    std::map<std::string, std::string> links; // the links on the way, by their own canonical paths, with their targets
    bool is_directory = false;
};
ResolvedPath resolve_trusted(const std::string &path, const std::string &what);

// Whole content of a trusted regular file, at most `limit` bytes (Failure(configuration) beyond).
std::string read_trusted_file(const std::string &path, std::size_t limit, const std::string &what);

// Names in a trusted directory that end with `suffix`, sorted bytewise; empty if the directory does not exist.
std::vector<std::string> list_trusted_directory(const std::string &path, const std::string &suffix, const std::string &what);

} // namespace pi_agent

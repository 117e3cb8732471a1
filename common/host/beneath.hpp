// Opens what lies below a directory, step by step, so that no link leads anywhere else.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/text.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace pi_agent {

// --- File operations beneath a directory whose content an attacker can rearrange at any moment: no link is followed, nothing above is
// reached.

// Opens `path` (relative, components separated by '/') beneath `top`, following no symbolic link (openat2(2), RESOLVE_BENEATH). `flags` as
// for open(2). Throws SystemFailure; ELOOP or EXDEV mean that something on the way is a link. With O_PATH a link at the end is opened
// itself.
UniqueFd open_beneath(FdRef top, const std::string &path, int flags);

// The same, but none when it cannot be opened (errno says why).
UniqueFd find_beneath(FdRef top, const std::string &path, int flags) noexcept;

// The same for who concludes something from not finding it: that this process or host has no descriptor or memory left is no answer, and
// throws SystemFailure.
UniqueFd look_beneath(FdRef top, const std::string &path, int flags);

// Opens the directory `name` in `parent` with all of its owner's rights: the agent may have taken them away, as module caches do, and
// without them nothing in it can be replaced. For the owner itself; others get what they may. None when it cannot be opened (errno).
UniqueFd try_take_directory(FdRef parent, const std::string &name);

// Opens a directory that this process' account owns, O_RDONLY, giving back every component the owner's rights that were taken away. None
// when there is none, or a link on the way (errno says which).
UniqueFd find_own_directory_beneath(FdRef top, const std::string &path);

// Makes every component of `path` a directory, replacing what is no directory. Returns the last one, O_RDONLY.
UniqueFd ensure_directory_beneath(FdRef top, const std::string &path);

// What a directory holds, in no order, without "." and "..".
std::vector<std::string> names_in(FdRef directory);

// Whether one of these satisfies; stops at the first that does.
bool find_name(FdRef directory, const std::function<bool(const std::string &name)> &satisfies);

// Renames `name` to a free "name.kept-XXXXXXXX" beside it, which is returned: what the agent made is not deleted.
std::string set_aside(FdRef directory, const std::string &name);

// "a/b/c" -> {"a/b", "c"}; {"", "c"} where there is no slash.
std::pair<std::string, std::string> split_last(const std::string &path);

// --- Walks an absolute path by descriptor, one component at a time, so that each step is judged before the next is taken.

// One opened step of a walk.
struct PathStep {
    std::string path;      // as walked, with followed links replaced by their targets
    UniqueFd fd;           // O_PATH; of the link itself where it is a symbolic link
    struct stat status {}; // of `fd`
};

// The kernel's own text for the place of a descriptor: canonical, without symbolic links. Empty where it lies in no place of this mount
// namespace.
std::string kernel_path(FdRef fd);

// The same; throws Failure(denied) in words for the user whose working directory it is.
std::string path_of_directory(FdRef fd);

// The text of a symbolic link, which `fd` is open on (O_PATH); `path` is for messages. Never empty. Throws SystemFailure.
std::string link_target(FdRef fd, const std::string &path);

constexpr int most_links = 40; // that a walk follows: as the kernel's own limit

// One step down, not through a link (O_PATH), for openat(2)'s first argument. None when it cannot be opened (errno).
UniqueFd open_step(int directory, const std::string &name) noexcept;

// The path of that step, or for ".." of the directory above.
std::string path_of_step(const std::string &directory, const std::string &name);

// Sees `entry` and the directory that holds it ("/" is its own holder) before the walk goes on. Refuses by throwing.
using StepJudge = std::function<void(const PathStep &holder, const PathStep &entry)>;

// Opens `path` and returns its last step, which is never a symbolic link. A link that `judge` lets pass is followed.
// Throws SystemFailure naming the step that could not be opened.
PathStep walk_path(const std::string &path, const StepJudge &judge);

// --- The directory that a start begins in, as its user has it: what refuses it, in the same words for `pi` and for who explains.

// "." or a path. Throws Failure(denied) for one that this user may not enter, SystemFailure for one that is not there.
UniqueFd open_working_directory(const std::string &path);

// Canonical. Throws Failure(denied) for one that was deleted, or that lies in no place of this mount namespace.
std::string path_of_working_directory(FdRef directory);

} // namespace pi_agent

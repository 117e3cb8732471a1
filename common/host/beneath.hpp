// File operations beneath a directory whose content an attacker can rearrange at any moment: no link is followed, nothing above is reached.
#pragma once

#include "common/base/fd.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

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

} // namespace pi_agent

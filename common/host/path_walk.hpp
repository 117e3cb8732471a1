// Walks an absolute path by descriptor, one component at a time, so that each step is judged before the next is taken.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/path_text.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace pi_agent {

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

} // namespace pi_agent

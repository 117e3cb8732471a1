// What an agent's files take on disk, and the project of quotas that they join.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"

#include <functional>

namespace pi_agent {

// --- Puts files into a project of disk quotas (FS_IOC_FSSETXATTR): one of them, or all of an agent's with the agent's rights.

// The project of an open file or directory, 0 without one. None where its file system knows no projects.
std::optional<std::uint32_t> project_of(FdRef file);

// True if what is made in this directory joins `project`, as the directory has.
bool passes_project_on(FdRef directory, std::uint32_t project);

// Makes a directory pass `project` on, and joins it. For its owner, and for root. Throws SystemFailure with `what`.
void join_project(FdRef directory, std::uint32_t project, const char *what);

// A file that has just joined, by its path below the top: joining sets its time of change, which others may know.
using Joined = std::function<void(const std::string &path, const struct stat &before, const struct stat &now)>;

// Joins each directory below `top` before it looks into it. From then on nothing enters that directory from outside of the project: the
// kernel refuses such renames and links (EXDEV). So nothing escapes this walk, whatever sessions of the same agent do meanwhile. Links,
// sockets and pipes stay outside, which have no content; so does what belongs to others. Sends its progress to `channel`. Throws Failure
// for a file that cannot join.
void join_tree(const AsUser &agent, FdRef top, std::uint32_t project, FdRef channel, const Joined &joined = {});

// --- How much disk a directory takes with all that is in it, measured with the rights of its owner.

// In bytes on disk. A file with several names counts once, other file systems and what the owner cannot read do not. Sends its progress to
// `channel`.
std::uint64_t measure_tree(const AsUser &owner, FdRef channel, FdRef top);

} // namespace pi_agent

// Puts files into a project of disk quotas (FS_IOC_FSSETXATTR): one of them, or all of an agent's with the agent's rights.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

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

} // namespace pi_agent

// Locks, and the file systems that cannot be trusted with them.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <functional>
#include <string>

namespace pi_agent {

// --- Waiting for a lock that another process holds, and not for ever.

// Locks a file for this description alone (flock(2), LOCK_EX). False when somebody else holds it until the deadline. `waiting` is called
// between two tries. Throws SystemFailure, in which `what` names the file, when it cannot be locked.
bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting = {});

// --- File systems that are another host's: locks there and the owners of files are whatever that host and the network make of them.

// "NFS", …; empty for what is of this host. `type` is statfs(2)'s.
std::string network_file_system(unsigned long type);

// Throws Failure(configuration) where `directory` lies on one; `path` names it, and `key` what of the policy says so.
void require_own_file_system(FdRef directory, const std::string &path, const std::string &key);

} // namespace pi_agent

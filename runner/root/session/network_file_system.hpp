// File systems that are another host's: locks there and the owners of files are whatever that host and the network make of them.
#pragma once

#include "common/base/fd.hpp"

#include <string>

namespace pi_agent {

// "NFS", …; empty for what is of this host. `type` is statfs(2)'s.
std::string network_file_system(unsigned long type);

// Throws Failure(configuration) where `directory` lies on one; `path` names it, and `key` what of the policy says so.
void require_own_file_system(FdRef directory, const std::string &path, const std::string &key);

} // namespace pi_agent

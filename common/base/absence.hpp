// What a failed call says of what it looked for: that it is not there, or nothing.
#pragma once

#include "common/base/fd.hpp"

#include <string>

namespace pi_agent {

// By errno. Throws SystemFailure for any other reason than ENOENT: who is short of memory or descriptors does not know what is there.
// `also`: the kernel's word for what went away while it was looked at, ENODEV of a control group, ESRCH of a process.
void require_gone(const std::string &action, int also = 0);

// Whether `directory` has that name, wherever it may lead. Throws as above.
bool has_name(FdRef directory, const std::string &name, const std::string &action);
// The same for a path of the host's.
bool path_exists(const std::string &path);

} // namespace pi_agent

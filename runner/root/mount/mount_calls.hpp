// Which of the calls that mount something a system-call filter around this host keeps from root.
#pragma once

#include "common/host/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Names, in no order that matters; empty where all can be made. Each is asked with arguments with which it does nothing. For root with
// CAP_SYS_ADMIN: without that the kernel itself refuses them.
std::vector<std::string> refused_mount_calls(const AsRoot &root);

} // namespace pi_agent

// The device nodes of the host that a session gets (policy: devices).
#pragma once

#include "common/base/ids.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct ShownDevices {
    std::vector<std::string> nodes;   // absolute; a node that appears later is not among them
    std::vector<Gid> groups;          // that may open them, where not everybody may
    std::vector<std::string> notices; // what the user should know, one text each
};

// Looks at the nodes below the host's /dev, which root alone can change, and opens none. Throws Failure(configuration) for anything that is
// not a character device.
ShownDevices find_devices(const AsRoot &root, const std::vector<PolicyPath> &devices);

} // namespace pi_agent

// Mounts that a session's view gets when it is there, in its own mount table alone.
#pragma once

#include "common/base/ids.hpp"
#include "runner/root/mount/mounts.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// In the host's table, systemd would visit each mount several times: as a part of the unit, and as one of the host's. Not for what the
// user could rename meanwhile: only a mount among the host's keeps a directory where it is.
struct LateMount {
    DetachedMount mount;
    std::string path; // as the agent sees it; any bytes
};

// In the mount namespace of the launcher, once that is there, and before it has started anything. Lets go of them. Throws where one cannot
// be attached.
void attach_late(const AsRoot &root, FdRef mount_namespace, std::vector<LateMount> &mounts);

// Where the launcher is to find mounts before it starts the agent.
std::vector<std::string> places_of(const std::vector<LateMount> &mounts);

} // namespace pi_agent

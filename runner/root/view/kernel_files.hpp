// The kernel's switches below /proc, which a session may not turn: what ProtectKernelTunables= (systemd.exec(5)) does there.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/view/late_mounts.hpp"

#include <vector>

namespace pi_agent {

// To be mounted over those that this kernel has: read-only copies, and something that nobody can open over what tells of the kernel's
// memory. Not by the unit's property, for which systemd 252 and 257 read the whole mount table once more for each of them. Throws.
std::vector<LateMount> protect_kernel_files(const AsRoot &root);

} // namespace pi_agent

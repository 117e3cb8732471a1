// Landlock scopes (landlock(7), Linux 6.12): no signals to, and no abstract sockets of, processes outside this session.
#pragma once

namespace pi_agent {

// False when the kernel has no such scopes: two sessions of one account can then signal each other (documented; PID namespaces close it).
// Throws Failure when the kernel has them and they cannot be set.
bool scope_with_landlock();

} // namespace pi_agent

// Makes a session's own network lead to its gate, and nowhere else.
#pragma once

#include "common/host/identity.hpp"
#include "runner/wire/gate_messages.hpp"

namespace pi_agent {

// Sockets in the session's network namespace, for the gate outside of it.
struct GateSockets {
    std::vector<ReceivedListener> listeners;
    UniqueFd lookup; // of direct_to_gate
};

// Call it when the launcher runs, and before it has started anything: then nobody else can have taken a port there. Makes every address
// local there, IPv4 and IPv6, and listens; `host_ports`: of the host's own loopback that the policy names, found at the same ports inside.
// Throws Failure for the host's own network, and where the kernel cannot do it: without it the session reaches nothing at all.
GateSockets open_gate_sockets(const AsRoot &root, FdRef network_namespace, const std::vector<std::uint16_t> &host_ports);

} // namespace pi_agent

// Makes a session's own network lead to its gate, and nowhere else.
#pragma once

#include "common/host/identity.hpp"
#include "runner/wire/gate_messages.hpp"

namespace pi_agent {

// --- Makes a session's own network lead to its gate, and nowhere else.

// Sockets in the session's network namespace, for the gate outside of it.
struct GateSockets {
    std::vector<ReceivedListener> listeners;
    UniqueFd lookup; // of direct_to_gate
};

// Call it when the launcher runs, and before it has started anything: then nobody else can have taken a port there. Makes every address
// local there, IPv4 and IPv6, and listens; `host_ports`: of the host's own loopback that the policy names, found at the same ports inside.
// Throws Failure for the host's own network, and where the kernel cannot do it: without it the session reaches nothing at all.
GateSockets open_gate_sockets(const AsRoot &root, FdRef network_namespace, const std::vector<std::uint16_t> &host_ports);

// As long as the result is open, each TCP connection of that namespace arrives at `v4` or `v6`, whatever its port, unless it goes to the
// loopback (BPF_PROG_TYPE_SK_LOOKUP of the kernel). A listener at all addresses would take the port from servers of the session, and know
// only the ports that it was opened for. Where the gate has closed its listener the connection is refused. `v6` may be empty.
UniqueFd direct_to_gate(const AsRoot &root, FdRef network_namespace, FdRef v4, FdRef v6);

} // namespace pi_agent

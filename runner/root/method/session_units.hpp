// The units of a session: the runner's own scope, and the session's gate with the channel to it.
#pragma once

#include "runner/plan/gate_plan.hpp"
#include "runner/root/method/sandbox.hpp"

namespace pi_agent {

// --- Moves the runner out of its caller's control group.

// Has systemd move this process into the scope of this session's name, and runs `meanwhile` while it does. A process that ends during the
// move leaves its scope behind, empty and for ever. So this waits for the move, whatever fails meanwhile. Only the scope's user can then
// still kill the process (cgroup.kill), so the empty scopes of others are stopped (best_effort: what fails is recorded).
void move_into_scope(SystemdBus &systemd, const std::string &session_id, Uid user, const std::function<void()> &meanwhile);

// Empty scopes of runners, of all users, a bounded number at once. Throws where nobody can tell.
std::vector<std::string> find_empty_scopes(SystemdBus &systemd);

// --- What a running session uses at this moment, from the kernel.

// `runner` is the process that runs it. Empty where the session has no control group of its own: before its sandbox has started, after it
// has ended, and under bwrap where root cannot write the hierarchy.
SessionUsage usage_of_session(const std::string &session_id, pid_t runner);

// --- The gate of one session: its unit, the channel to it, and what must stay open for it.

// Sockets in the session's network namespace, for the gate outside of it.
struct GateSockets {
    std::vector<ReceivedListener> listeners;
    UniqueFd lookup; // while it is open, connections arrive at the listeners
};

// Call it when the launcher runs, and before it has started anything: then nobody else can have taken a port there. Makes every address
// local there, IPv4 and IPv6, and listens; `host_ports`: of the host's own loopback that the policy names, found at the same ports inside.
// Throws Failure for the host's own network, and where the kernel cannot do it: without it the session reaches nothing at all.
GateSockets open_gate_sockets(const AsRoot &root, FdRef network_namespace, const std::vector<std::uint16_t> &host_ports);

class SessionGate {
public:
    // Begins to start it. It waits for its order. Borrows the sandbox.
    SessionGate(Sandbox &sandbox, GateRoot root);
    SessionGate(const SessionGate &) = delete;
    SessionGate &operator=(const SessionGate &) = delete;
    // Waits for the end of one that was not opened: systemd may still be making its file system, in a directory of the session that is
    // removed next. An open one ends with its channel, and nobody waits.
    ~SessionGate();
    // Call it when the launcher runs, and before it has started anything. Opens the gate's listeners in the session's network, hands them
    // over with the order, and returns when the gate serves. Throws Failure(unavailable) when it does not. The caller forgets the keys.
    void open(const AsRoot &root, GateOrder &order, const std::vector<std::uint16_t> &host_ports);
    // Ends it, whatever it does: with the kernel alone. Throws.
    void kill();
    // Closed, the gate ends.
    [[nodiscard]] FdRef channel() const { return channel_; }
    // What the gate says afterwards comes here, and its end.
    [[nodiscard]] FdRef said() const { return said_; }

private:
    void end();

    Sandbox &sandbox_;
    const GateRoot root_;
    bool is_open_ = false;
    UniqueFd channel_; // takes in nothing that the gate sends
    UniqueFd said_;
    UniqueFd lookup_; // without it, connections to other addresses are refused
};

} // namespace pi_agent

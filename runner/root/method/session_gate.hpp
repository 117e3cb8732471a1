// The gate of one session: its unit, the channel to it, and what must stay open for it.
#pragma once

#include "runner/plan/gate_plan.hpp"
#include "runner/root/method/sandbox.hpp"

namespace pi_agent {

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
    // Closed, the gate ends.
    [[nodiscard]] FdRef channel() const { return ends_.order; }
    // What the gate says afterwards comes here, and its end.
    [[nodiscard]] FdRef said() const { return ends_.said; }

private:
    struct Ends {
        UniqueFd order; // takes in nothing that the gate sends
        UniqueFd said;
    };
    static Ends start(Sandbox &sandbox, const GateRoot &root);

    Sandbox &sandbox_;
    const GateRoot root_;
    bool is_open_ = false;
    Ends ends_;
    UniqueFd lookup_; // without it, connections to other addresses are refused
};

} // namespace pi_agent

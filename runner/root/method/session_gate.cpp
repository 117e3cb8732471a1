// Starts the gate of a session and hands it what it needs.
#include "runner/root/method/session_gate.hpp"

#include "common/seams/seams.hpp"
#include "runner/root/network/gate_sockets.hpp"
#include "runner/root/session/record.hpp"

#include <sys/socket.h>

namespace pi_agent {

namespace {

constexpr int gate_patience_seconds = 10; // it has been starting since before the session's own unit

void require_ready(FdRef said, Deadline deadline)
{
    const std::optional<std::string> packet = read_packet(said, deadline);
    if (!packet) throw Failure(ExitStatus::unavailable, "it ended");
    if (!std::holds_alternative<GateReady>(decode_gate_message(*packet))) throw ProtocolError("it says something else first");
}

} // namespace

// Listeners need a socket, and whoever has its other end can send descriptors back. They would wait at root's end, unread, to be closed in
// root's name. So that end takes in nothing.
SessionGate::Ends SessionGate::start(Sandbox &sandbox, const GateRoot &root)
{
    auto [ours, theirs] = make_channel();
    if (defence_is_on("gate-one-way") && shutdown(ours.get(), SHUT_RD) != 0) throw_errno("making the gate's channel one of one way");
    Pipe said = make_packet_pipe();
    sandbox.start_gate(root, theirs, said.writing);
    fault_point("gate-asked-for");
    return {std::move(ours), std::move(said.reading)};
}

SessionGate::SessionGate(Sandbox &sandbox, GateRoot root) : sandbox_(sandbox), root_(std::move(root)), ends_(start(sandbox, root_)) {}

SessionGate::~SessionGate() // NOLINT(bugprone-exception-escape): attempt_recorded catches it
{
    if (is_open_) return;
    ends_ = {};
    attempt_recorded(sandbox_.session(), [&] { sandbox_.end_gate(); });
}

void SessionGate::open(const AsRoot &root, GateOrder &order, const std::vector<std::uint16_t> &host_ports)
{
    GateSockets sockets = open_gate_sockets(root, sandbox_.network_namespace(), host_ports);
    order.listeners = sockets.listeners.size();
    const Deadline deadline = in_seconds(gate_patience_seconds);
    try {
        send_gate_order(ends_.order, order, deadline);
        for (const auto &listener : sockets.listeners)
            send_gate_listener(ends_.order, listener.about, listener.socket, deadline);
        require_ready(ends_.said, deadline);
    } catch (const Failure &failure) {
        const std::string refusal = sandbox_.refusal_of_gate(root_);
        throw Failure(ExitStatus::unavailable, "the session's gate does not serve: " + (refusal.empty() ? failure.what() : refusal) +
                                                   "; the administrator finds more with: journalctl -u " + gate_name(sandbox_.session()));
    }
    lookup_ = std::move(sockets.lookup);
    is_open_ = true;
    fault_point("gate-open");
}

} // namespace pi_agent

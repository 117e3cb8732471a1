// Starts the gate of a session and hands it what it needs.
#include "runner/root/method/session_gate.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/network/gate_sockets.hpp"
#include "runner/root/session/record.hpp"
#include "runner/wire/answer.hpp"

#include <utility>

namespace pi_agent {

namespace {

constexpr int gate_patience_seconds = 10; // it has been starting since before the session's own unit

UniqueFd start_gate_of(Sandbox &sandbox, const GateRoot &root)
{
    auto [ours, theirs] = make_channel();
    sandbox.start_gate(root, theirs);
    fault_point("gate-asked-for");
    return std::move(ours); // cppcheck-suppress returnStdMoveLocal ; it is a part of a pair
}

void require_ready(FdRef channel, Deadline deadline)
{
    const std::optional<Packet> packet = receive_plain_packet(channel, deadline);
    if (!packet) throw Failure(ExitStatus::unavailable, "it ended");
    if (!std::holds_alternative<GateReady>(decode_gate_message(packet->bytes))) throw ProtocolError("it says something else first");
}

} // namespace

SessionGate::SessionGate(Sandbox &sandbox, GateRoot root)
    : sandbox_(sandbox), root_(std::move(root)), channel_(start_gate_of(sandbox, root_))
{
}

SessionGate::~SessionGate() // NOLINT(bugprone-exception-escape): attempt_recorded catches it
{
    if (!is_open_) attempt_recorded(sandbox_.session(), [&] { sandbox_.end_gate(); });
}

void SessionGate::open(const AsRoot &root, GateOrder &order, const std::vector<std::uint16_t> &host_ports)
{
    GateSockets sockets = open_gate_sockets(root, sandbox_.network_namespace(), host_ports);
    order.listeners = sockets.listeners.size();
    const Deadline deadline = in_seconds(gate_patience_seconds);
    try {
        send_gate_order(channel_, order, deadline);
        for (const auto &listener : sockets.listeners)
            send_gate_listener(channel_, listener.about, listener.socket, deadline);
        require_ready(channel_, deadline);
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

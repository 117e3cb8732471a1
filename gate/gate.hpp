// What all connections of a session's gate share: the outside, the listeners, and what the runner is told.
#pragma once

#include "gate/dialing.hpp"
#include "gate/name_server.hpp"

#include <boost/asio/steady_timer.hpp>
#include <tuple>

namespace pi_agent {

// What the gate tells the runner about refused connections: each once a second at most, with its count.

// Different ones in one second; what goes beyond is counted under its reason, without a host.
constexpr std::size_t denials_a_second = 50;

class Denials {
public:
    // `runner`: a pipe of packets.
    Denials(boost::asio::io_context &loop, FdRef runner) : runner_(runner), timer_(loop) {}
    // Nothing waits: where the runner does not read, they are counted until it does.
    void report(GateDenial denial);
    // What was counted since, at once: before the end, and each second.
    void tell_rest();

private:
    void send(GateDenial &denial) const;
    void wait();

    using Key = std::tuple<DenialKind, std::string, std::uint16_t, DenialReason>;
    FdRef runner_;
    boost::asio::steady_timer timer_;
    std::map<Key, GateDenial> recent_ = {}; // count 0: sent, and nothing more since
    bool waits_ = false;
};

// For people, in a line: what was refused, why, and what would change it.
std::string text_of_denial(const GateDenial &denial);

// What all connections of a session's gate share, and how each reaches the outside.

// What a session can make its gate hold must fit into the memory of the gate's unit (256 MiB: runner/plan/gate_plan.cpp). In KiB, at most:
//   a request at the route, 510: its head as it came (80), in fields (80), as a target (8) and as it goes out (88); TLS by Asio's and
//       OpenSSL's buffers, with the provider's certificates (150); the answer's head (40); pieces of bodies (64)
//   any other connection, 130: one piece in each direction (64) that the other side does not take
//   all of these together, 16,384 beyond such pieces (gate/relay.hpp)
//   the gate itself, 20,500: its program, the host's certificates, 8,192 names and the last denials
// So 128 of the one and 384 of the other hold 149 MiB together. The kernel's buffers of all these sockets are charged to the unit, too:
// they have the rest, and who fills that as well ends their own gate.
constexpr std::size_t connection_limit = 512; // at once, with questions to the name server over TCP
constexpr std::size_t route_limit = 128;      // of these: requests at the reverse route

struct Gate {
    // `runner`: a pipe of packets, for what it tells.
    Gate(boost::asio::io_context &the_loop, FdRef runner, const GateOrder &order);
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    // One more connection as long as the result lives; empty where there are too many.
    std::shared_ptr<void> count_connection(bool is_at_route = false);

    boost::asio::io_context &loop;
    std::chrono::seconds idle;
    GateRules rules;
    Denials denials;
    Lookup lookup;
    HostRoutes routes = {};
    NameTable names = {};
    bool has_v6 = false; // the session has a listener of IPv6, so its name server says addresses of it
    std::size_t connections = 0, at_route = 0;
    // Answers at the reverse route; without it, such a connection is closed.
    std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void> counted)> serve_route = {};
};

// How an attempt to reach the outside ended.
struct Reached {
    std::optional<boost::asio::ip::tcp::socket> socket = {};
    std::optional<DenialReason> reason = {}; // without a socket; none where nobody answered
    std::string where = {};                  // of the rule that almost allows it
};
using WhenReached = std::function<void(Reached)>;

// Why a session may not connect to it; nothing where it may.
std::optional<Reached> why_not(const Gate &gate, const Target &target);

// A name, whatever the rules say of it: looked up once, each of its addresses is judged, and one of the good ones is dialled. For a
// provider's host, which the policy names elsewhere.
void reach_name(Gate &gate, const Target &target, WhenReached when_reached);

// By the rules: what they allow is looked up once, each of its addresses is judged, and one of the good ones is dialled.
void reach(Gate &gate, const Target &target, WhenReached when_reached);

// The sockets that the runner made in the session's network, and who answers at each.

// Throws SystemFailure for one that is no listener.
void serve(Gate &gate, std::vector<ReceivedListener> listeners);

} // namespace pi_agent

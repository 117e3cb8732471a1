// What all connections of a session's gate share, and how each reaches the outside.
#pragma once

#include "gate/denials.hpp"
#include "gate/dialing.hpp"
#include "gate/lookup.hpp"
#include "gate/name_table.hpp"
#include "gate/rules.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace pi_agent {

constexpr std::size_t connection_limit = 512; // at once, with questions to the name server over TCP

struct Gate {
    Gate(boost::asio::io_context &the_loop, FdRef channel, const GateOrder &order);
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    // One more connection as long as the result lives; empty where there are too many.
    std::shared_ptr<void> count_connection();

    boost::asio::io_context &loop;
    std::chrono::seconds idle;
    GateRules rules;
    Denials denials;
    Lookup lookup;
    NameTable names = {};
    bool has_v6 = false; // the session has a listener of IPv6, so its name server says addresses of it
    std::size_t connections = 0;
    // Answers at the reverse route; without it, such a connection is closed.
    std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void> counted)> serve_route = {};
};

// How an attempt to reach the outside ended.
struct Reached {
    std::optional<boost::asio::ip::tcp::socket> socket = {};
    const char *reason = ""; // without a socket: a word of denial_reasons; empty where nobody answered
    std::string where = {};  // of the rule that almost allows it
};
using WhenReached = std::function<void(Reached)>;

// Why a session may not connect to it; nothing where it may.
std::optional<Reached> why_not(const Gate &gate, const Target &target);

// A name, whatever the rules say of it: looked up once, each of its addresses is judged, and one of the good ones is dialled. For a
// provider's host, which the policy names elsewhere.
void reach_name(Gate &gate, const Target &target, WhenReached when_reached);

// By the rules: what they allow is looked up once, each of its addresses is judged, and one of the good ones is dialled.
void reach(Gate &gate, const Target &target, WhenReached when_reached);

} // namespace pi_agent

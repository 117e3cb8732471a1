// What the gate tells the runner about refused connections: each once a second at most, with its count.
#pragma once

#include "common/base/packet_pipe.hpp"
#include "runner/wire/gate_messages.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <map>
#include <string>
#include <tuple>

namespace pi_agent {

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

} // namespace pi_agent

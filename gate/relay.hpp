// Bytes between the session and the outside, in both directions, until both have ended.
#pragma once

#include "gate/first_bytes.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace pi_agent {

// Judges the session's first bytes, all that came so far. What it refuses, it says to the session with `farewell`.
struct Judgement {
    FirstBytes first = {};
    std::string farewell = {};
};
using Judge = std::function<Judgement(std::string_view bytes)>;

struct RelaySetup {
    boost::asio::ip::tcp::socket session, outside;
    std::string first = {}; // of the session, read already: goes through `judge` if there is one, else outside
    Judge judge = {};
    std::uint64_t further = without_end; // without a judge: how many bytes after `first` may go outside
    bool is_patient = false;             // the session need not speak first: until it does, what comes from outside passes
    std::chrono::seconds idle{};
    std::shared_ptr<void> counted = {}; // one of the session's connections, as long as the relay lives
};

// Reads a side only while the other takes what came. One side's end (FIN) is handed on to the other, which may go on; a side that breaks
// off (RST) breaks the other off, so that half an answer never looks whole.
void start_relay(RelaySetup setup);

// Says something to whoever connected, and closes when they have read it.
void say_farewell(boost::asio::ip::tcp::socket socket, std::string text, std::shared_ptr<void> counted);

} // namespace pi_agent

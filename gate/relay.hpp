// Bytes between the session and the outside: held within bounds, in both directions, until both have ended.
#pragma once

#include "gate/first_bytes.hpp"
#include "gate/gate.hpp"

namespace pi_agent {

// What a relay has read and the other side has not taken yet, and how much a relay may read at once, so that all of it stays bounded.

// Every relay may read a piece, and hold it, in each direction. A stream passes faster by reads that are larger: fewer of them, and fewer
// awakenings of both sides (docs/benchmarks-results.md). So a relay reads much at once, as long as there is little that all relays
// together hold beyond their pieces. All in bytes.
constexpr std::size_t one_piece = std::size_t{64} << 10U;
constexpr std::size_t most_at_once = std::size_t{512} << 10U;
constexpr std::size_t most_beyond = std::size_t{16} << 20U;

class Held {
public:
    Held() = default;
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
    ~Held();

    // How much may be read now, for one direction that holds nothing: `most_at_once` or `one_piece`.
    static std::size_t room();

    bool is_empty() const { return taken_ == bytes_.size(); }
    std::string_view rest() const { return std::string_view(bytes_).substr(taken_); }
    void append(std::string_view bytes);
    void replace(std::string bytes);
    // The first `count` of the rest are written. Nothing is kept of what is written whole.
    void take(std::size_t count);

private:
    void count();

    std::string bytes_ = {};
    std::size_t taken_ = 0, beyond_ = 0;
};

// Bytes between the session and the outside, in both directions, until both have ended.

// Judges the session's first bytes, all that came so far.
using Judge = std::function<FirstBytes(std::string_view bytes)>;

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

// Takes the socket over, says something to whoever connected, and closes when they have read it. With bytes of theirs unread, a close would
// reset the connection, and what was said could be lost with it.
void say_farewell(boost::asio::ip::tcp::socket &socket, std::string text, std::shared_ptr<void> counted);

// One connection of the session's: to the proxy, or to anything by itself.

// HTTP_PROXY: "CONNECT host:port", or a plain request with a whole address.
void visit_proxy(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

// What connects by itself: the address that it means is the socket's own, and stands for a name where the gate's name server gave it.
void visit_directly(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

} // namespace pi_agent

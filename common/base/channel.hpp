// Packets and records over a local SOCK_SEQPACKET pair, with descriptors (unix(7), SCM_RIGHTS). Every length is bounded.
#pragma once

#include "common/base/error.hpp"
#include "common/base/fd.hpp"

#include <chrono>
#include <optional>

namespace pi_agent {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// The peer broke the protocol: wrong sizes, unexpected descriptors, unknown messages.
class ProtocolError : public Failure {
public:
    explicit ProtocolError(const std::string &text) : Failure(ExitStatus::denied, text) {}
};

// No answer before the deadline.
class DeadlineExceeded : public Failure {
public:
    explicit DeadlineExceeded(const std::string &text) : Failure(ExitStatus::system_failure, text) {}
};

struct Packet {
    std::string bytes;
    std::vector<UniqueFd> fds; // all close-on-exec
};

constexpr std::size_t packet_limit = 32UL * 1024; // bytes in one packet
constexpr std::size_t record_limit =
    4UL * 1024 * 1024; // bytes in one record; Linux itself ends argv and environment at 2 MiB of an 8 MiB stack
constexpr std::size_t packet_fd_limit = 8;

// A connected pair, both ends close-on-exec.
std::pair<UniqueFd, UniqueFd> make_channel();

// Sends one packet, and waits for a full peer until `deadline`. Throws SystemFailure (EPIPE: the peer is gone) or DeadlineExceeded.
void send_packet(FdRef channel, std::string_view bytes, const std::vector<int> &fds, Deadline deadline);

// Receives one packet, or nothing if the peer has closed. Throws ProtocolError if it was truncated or has too many descriptors,
// DeadlineExceeded if none came in time.
std::optional<Packet> receive_packet(FdRef channel, Deadline deadline);

// The same without ever holding a descriptor: it leaves a packet with one unread and throws ProtocolError. For root, where the peer is
// hostile and nobody else reads this end.
std::optional<Packet> receive_plain_packet(FdRef channel, Deadline deadline);

// A record may be longer than a packet: first its length, then the bytes in pieces. Descriptors go with the first packet.
class OutgoingRecord {
public:
    // Borrows both until all is sent. Throws Failure if it is too large.
    OutgoingRecord(std::string_view bytes, std::vector<int> fds);
    // Sends what is left, as send_packet. After DeadlineExceeded it can go on later.
    void send(FdRef channel, Deadline deadline);

private:
    std::string_view bytes_;
    std::vector<int> fds_;
    std::size_t sent_ = 0;
    bool is_begun_ = false;
};
void send_record(FdRef channel, std::string_view bytes, const std::vector<int> &fds, Deadline deadline);
std::optional<Packet> receive_record(FdRef channel, Deadline deadline);

// Waits until `fd` has input or its peer is gone. False when the deadline passed.
bool wait_for_input(FdRef fd, Deadline deadline);

inline Deadline in_seconds(int seconds)
{
    return Clock::now() + std::chrono::seconds(seconds);
}

// For poll(2): at least the time that is left, at most a minute. Callers that wait longer ask again.
int milliseconds_left(Deadline deadline);

// Writes fields of a message in order: numbers little-endian, strings with their length.
class Encoder {
public:
    Encoder &number(std::uint64_t value);
    Encoder &text(std::string_view value);
    Encoder &texts(const std::vector<std::string> &values);
    [[nodiscard]] const std::string &bytes() const noexcept { return bytes_; }
    // For bytes that are to leave no copy: room for all of them first, and zeros over them at last.
    void reserve(std::size_t size) { bytes_.reserve(size); }
    void forget() noexcept;

private:
    std::string bytes_;
};

// Reads them back. Checks every read against the bytes that are left, and throws ProtocolError.
class Decoder {
public:
    explicit Decoder(std::string_view bytes) noexcept : rest_(bytes) {}
    std::uint64_t number();
    bool flag(); // only 0 or 1
    std::string text();
    std::vector<std::string> texts(std::size_t limit = record_limit / 8); // each needs its length, so no record has more
    void end() const;                                                     // throws if bytes are left over
    [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

private:
    std::string_view rest_;
};

// Packets in one direction over a pipe (pipe2(2), O_DIRECT), with which no descriptor can be. For root, where it listens to a process that
// an attacker may have taken over: a descriptor that comes with a packet of a socket is closed in the name of the process that has the
// other end, read or not, and the last close of a socket with SO_LINGER takes as long as its owner said.

constexpr std::size_t pipe_packet_limit = 4096; // bytes: what a pipe keeps together

// Neither end waits.
Pipe make_packet_pipe();

// Throws SystemFailure at once where there is no room, or no reader.
void write_packet(FdRef pipe, std::string_view bytes);

// The next packet, or nothing where every writer has closed. Throws ProtocolError for one that is too long, DeadlineExceeded if none came
// in time. A hostile writer can make one out of several, or several out of one.
std::optional<std::string> read_packet(FdRef pipe, Deadline deadline);

} // namespace pi_agent

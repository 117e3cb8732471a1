// Owned and borrowed descriptors, how to get them, and packets and records over them. Every length is bounded.
#pragma once

#include "common/base/error.hpp"

#include <chrono>
#include <fcntl.h>
#include <map>
#include <optional>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>
#include <variant>

namespace pi_agent {

// Borrowed: never closes. Valid as long as its owner lives.
class FdRef {
public:
    explicit constexpr FdRef(int fd) noexcept : fd_(fd) {}
    [[nodiscard]] constexpr int get() const noexcept { return fd_; }

private:
    int fd_;
};

// Owns one descriptor, or none. close(2) is never retried: Linux releases the descriptor even on EINTR.
class UniqueFd {
public:
    constexpr UniqueFd() noexcept = default;
    // Takes ownership of `fd`.
    static UniqueFd adopt(int fd) noexcept
    {
        UniqueFd owner;
        owner.fd_ = fd;
        return owner;
    }
    UniqueFd(UniqueFd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd &operator=(UniqueFd &&other) noexcept
    {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    UniqueFd(const UniqueFd &) = delete;
    UniqueFd &operator=(const UniqueFd &) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    explicit operator bool() const noexcept { return is_open(); }
    operator FdRef() const noexcept { return FdRef(fd_); } // NOLINT(google-explicit-constructor): borrowing is always safe
    // Gives ownership away.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    void reset() noexcept
    {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

private:
    int fd_ = -1;
};

// Another number for the same open file: close-on-exec, and above the standard descriptors. Empty if it fails (errno).
inline UniqueFd duplicate(FdRef fd) noexcept
{
    return UniqueFd::adopt(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

// --- Opens, close-on-exec. Empty on failure (errno); functions with an `action` throw SystemFailure instead.

UniqueFd open_at(FdRef directory, const std::string &name, int flags, mode_t mode = 0) noexcept;
UniqueFd open_or_throw(const std::string &action, const std::string &path, int flags);
UniqueFd open_or_throw(const std::string &action, FdRef directory, const std::string &name, int flags, mode_t mode = 0);

// openat2(2), with its RESOLVE_ bits; "" is the directory itself.
UniqueFd open_resolved(FdRef directory, const std::string &path, int flags, std::uint64_t resolve) noexcept;

struct Pipe {
    UniqueFd reading, writing;
};

// Both ends close-on-exec; `reading_flags` are for the reading end only: O_NONBLOCK, or 0.
Pipe make_pipe(int reading_flags = 0, const char *action = "making a pipe");

struct stat examine(FdRef fd, const std::string &action);

// The target of a symlink. A `name` of "" means the symlink that is open itself (O_PATH). Empty if it cannot be read (errno); cut at
// PATH_MAX.
std::string read_link(FdRef directory, const std::string &name);

// --- Packets and records over a local SOCK_SEQPACKET pair, with descriptors (unix(7), SCM_RIGHTS).

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

// --- One description of a message's fields, for writing and for reading it.

// A message has a function `static void fields(auto &archive, auto &self)`, which hands its fields to `archive` in the order of the bytes:
// numbers, flags, enumerations, texts, other messages, lists of these, what may be missing of these, and descriptors, which go beside the
// bytes. A reader throws ProtocolError for anything else.

// Writes fields: numbers little-endian, strings with their length.
class Encoder {
public:
    Encoder &number(std::uint64_t value);
    Encoder &text(std::string_view value);
    Encoder &texts(const std::vector<std::string> &values);
    [[nodiscard]] const std::string &bytes() const noexcept { return bytes_; }
    // Of the fields that are open; they are borrowed.
    [[nodiscard]] const std::vector<int> &descriptors() const noexcept { return descriptors_; }
    // For bytes that are to leave no copy: room for all of them first, and zeros over them at last.
    void reserve(std::size_t size) { bytes_.reserve(size); }
    void forget() noexcept;

    void operator()(const auto &...fields) { (put(fields), ...); }
    // A reader accepts no larger number, and no longer list or text.
    void bounded(const auto &field, auto /*limit*/, const char * /*problem*/ = nullptr) { put(field); }
    // Cut to `limit` bytes. A reader refuses a longer text with `problem`, if there is one.
    void cut(const std::string &field, std::size_t limit, const char * /*problem*/ = nullptr)
    {
        text(std::string_view(field).substr(0, limit));
    }
    // A check by the reader.
    void require(const auto & /*holds*/, const char * /*problem*/) {}

private:
    void put(const std::string &field) { text(field); }
    template <typename Field>
    void put(const std::optional<Field> &field)
    {
        number(field ? 1 : 0);
        if (field) put(*field);
    }
    void put(const std::map<std::string, std::string> &pairs)
    {
        number(2 * pairs.size());
        for (const auto &[key, value] : pairs)
            text(key).text(value);
    }
    void put(const UniqueFd &descriptor)
    {
        number(descriptor ? 1 : 0);
        if (descriptor) descriptors_.push_back(descriptor.get());
    }
    template <typename Field>
    void put(const std::vector<Field> &list)
    {
        number(list.size());
        for (const auto &one : list)
            put(one);
    }
    template <typename Field>
    void put(const Field &field)
    {
        if constexpr (std::is_class_v<Field>)
            Field::fields(*this, field);
        else
            number(static_cast<std::uint64_t>(field));
    }

    std::string bytes_;
    std::vector<int> descriptors_;
};

// Reads them back. Checks every read against the bytes that are left, and throws ProtocolError.
class Decoder {
public:
    explicit Decoder(std::string_view bytes, std::vector<UniqueFd> &&descriptors = {}) noexcept
        : rest_(bytes), descriptors_(std::move(descriptors))
    {
    }
    std::uint64_t number();
    bool flag(); // only 0 or 1
    std::string text();
    std::vector<std::string> texts(std::size_t limit = record_limit / 8); // each needs its length, so no record has more
    void end() const;                                                     // throws if bytes or descriptors are left over
    [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

    void operator()(auto &...fields) { (take(fields), ...); }
    template <typename Number>
    void bounded(Number &field, std::type_identity_t<Number> limit, const char *problem)
    {
        const std::uint64_t value = number();
        require([&] { return value <= static_cast<std::uint64_t>(limit); }, problem);
        field = static_cast<Number>(value);
    }
    void bounded(std::string &field, std::size_t limit, const char *problem) { cut(field, limit, problem); }
    void bounded(std::vector<std::string> &list, std::size_t limit) { list = texts(limit); }
    template <typename Field>
    void bounded(std::vector<Field> &list, std::uint64_t limit, const char *problem)
    {
        std::uint64_t left = number();
        for (require([&] { return left <= limit; }, problem); left > 0; --left)
            take(list.emplace_back());
    }
    void bounded(std::map<std::string, std::string> &pairs, std::uint64_t limit, const char *problem)
    {
        std::uint64_t left = number();
        for (require([&] { return left % 2 == 0 && left / 2 <= limit; }, problem); left > 0; left -= 2) {
            std::string key = text();
            pairs[key] = text();
        }
    }
    void cut(std::string &field, std::size_t limit, const char *problem = nullptr)
    {
        field = text();
        require([&] { return problem == nullptr || field.size() <= limit; }, problem);
    }
    void require(const auto &holds, const char *problem)
    {
        if (!holds()) throw ProtocolError(problem);
    }

private:
    static constexpr const char *other_descriptors = "a message came with the wrong number of descriptors";

    void take(bool &field) { field = flag(); }
    void take(std::string &field) { field = text(); }
    template <typename Field>
    void take(std::optional<Field> &field)
    {
        if (flag()) take(field.emplace());
    }
    void take(std::vector<std::string> &list) { list = texts(); }
    void take(UniqueFd &descriptor)
    {
        if (!flag()) return;
        if (taken_ == descriptors_.size()) throw ProtocolError(other_descriptors);
        descriptor = std::move(descriptors_[taken_++]);
    }
    void take(auto &field)
    {
        using Field = std::remove_reference_t<decltype(field)>;
        if constexpr (requires { field.emplace_back(); })
            bounded(field, UINT64_MAX, "");
        else if constexpr (std::is_class_v<Field>)
            Field::fields(*this, field);
        else
            field = static_cast<Field>(number());
    }

    std::string_view rest_;
    std::vector<UniqueFd> descriptors_;
    std::size_t taken_ = 0;
};

// Each of several messages has its own number, `static constexpr std::uint64_t type`, before its fields.
template <typename Message>
std::string encode(const Message &message)
{
    Encoder write;
    if constexpr (requires { Message::type; }) write(Message::type);
    write(message);
    return write.bytes();
}

template <typename First, typename... Others>
std::string encode(const std::variant<First, Others...> &message)
{
    return std::visit([](const auto &one) { return encode(one); }, message);
}

template <typename Message>
Message decode_packet(Packet packet)
{
    Decoder read(packet.bytes, std::move(packet.fds));
    Message message{};
    read(message);
    read.end();
    return message;
}

template <typename Message>
Message decode_fields(std::string_view bytes)
{
    return decode_packet<Message>({std::string(bytes), {}});
}

// A list of texts only, of at most `limit`.
inline std::vector<std::string> decode_texts(std::string_view bytes, std::size_t limit)
{
    Decoder decoder(bytes);
    std::vector<std::string> texts = decoder.texts(limit);
    decoder.end();
    return texts;
}

// Reads the message with that number; false if there is no such message.
template <typename... Messages>
bool read_one_of(Decoder &decoder, std::uint64_t type, std::variant<Messages...> &message)
{
    return ((type == Messages::type && (decoder(message.template emplace<Messages>()), true)) || ...);
}

template <typename Variant>
Variant decode_one_of(std::string_view bytes, const char *unknown)
{
    Decoder decoder(bytes);
    const std::uint64_t type = decoder.number();
    Variant message;
    if (!read_one_of(decoder, type, message)) throw ProtocolError(unknown);
    decoder.end();
    return message;
}

} // namespace pi_agent

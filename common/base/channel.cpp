// Packets and records over SOCK_SEQPACKET.
#include "common/base/channel.hpp"

#include "common/seams/seams.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <climits>
#include <cstring>

namespace pi_agent {

namespace {

// The kernel adds a descriptor of the sender to each packet if somebody has switched SO_PASSPIDFD on. A peer that shares our end of the
// pair can do that (Linux 6.5; not in the headers of Debian 12).
constexpr int scm_pidfd = 4;
constexpr std::uint64_t record_magic = 0x70692d7265630001; // "pi-rec", version 1

bool wait_for(FdRef fd, short events, Deadline deadline)
{
    for (;;) {
        pollfd entry{fd.get(), events, 0};
        const int ready = poll(&entry, 1, milliseconds_left(deadline));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) throw_errno("waiting for a socket");
        if (Clock::now() >= deadline) return false;
    }
}

// After a call that found the peer not ready. poll(2) may say otherwise again and again: another reader was faster, or there is room for
// less than what is sent.
void wait_for_peer(FdRef channel, short events, Deadline deadline, const char *too_late)
{
    if (Clock::now() >= deadline || !wait_for(channel, events, deadline)) throw DeadlineExceeded(too_late);
}

// One packet into `buffer`; its length, 0 when the peer has closed. `message` is filled for its flags and control data.
std::size_t receive_message(FdRef channel, msghdr &message, std::string &buffer, char *control, std::size_t control_size, int flags,
                            Deadline deadline)
{
    iovec part{buffer.data(), buffer.size()};
    for (;;) {
        message = msghdr{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = control_size;
        const ssize_t length = recvmsg(channel.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | flags);
        if (length >= 0) return static_cast<std::size_t>(length);
        // ECONNRESET: the peer closed before it had read everything. The kernel reports it once; what the peer had said before can still be
        // read.
        if (errno == EINTR || errno == ECONNRESET) continue;
        if (errno != EAGAIN) throw_errno("receiving from the peer");
        wait_for_peer(channel, POLLIN, deadline, "the peer did not answer in time");
    }
}

// Cuts `buffer` to what came. False when nothing did.
bool take_bytes(const msghdr &message, std::string &buffer, std::size_t length)
{
    if ((message.msg_flags & MSG_TRUNC) != 0 || length > packet_limit)
        throw ProtocolError("a packet larger than " + std::to_string(packet_limit) + " bytes was refused");
    buffer.resize(length);
    return length != 0;
}

} // namespace

int milliseconds_left(Deadline deadline)
{
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left < 0) return 0;
    return left > 60'000 ? 60'000 : static_cast<int>(left) + 1;
}

std::pair<UniqueFd, UniqueFd> make_channel()
{
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_errno("making a socket pair");
    return {UniqueFd::adopt(ends[0]), UniqueFd::adopt(ends[1])};
}

bool wait_for_input(FdRef fd, Deadline deadline)
{
    return wait_for(fd, POLLIN, deadline);
}

void send_packet(FdRef channel, std::string_view bytes, const std::vector<int> &fds, Deadline deadline)
{
    if (bytes.empty() || bytes.size() > packet_limit || fds.size() > packet_fd_limit)
        throw Failure(ExitStatus::internal, "a packet of this size is never sent");
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * packet_fd_limit)> control{};
    iovec part{const_cast<char *>(bytes.data()), bytes.size()}; // NOLINT(cppcoreguidelines-pro-type-const-cast): sendmsg(2) does not write
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    for (;;) {
        if (sendmsg(channel.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return;
        if (errno == EINTR) continue;
        if (errno != EAGAIN) throw_errno("sending to the peer");
        wait_for_peer(channel, POLLOUT, deadline, "the peer did not read in time");
    }
}

std::optional<Packet> receive_packet(FdRef channel, Deadline deadline)
{
    std::string buffer(packet_limit + 1, '\0');
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * packet_fd_limit)> control{};
    msghdr message{};
    const std::size_t length = receive_message(channel, message, buffer, control.data(), control.size(), 0, deadline);
    Packet packet;
    bool pidfd = false;
    // Adopt what arrived before anything can throw: a refused packet must not leak descriptors.
    for (cmsghdr *header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET) continue;
        const bool uninvited = header->cmsg_type == scm_pidfd && defence_is_on("uninvited-pidfds");
        if (header->cmsg_type != SCM_RIGHTS && !uninvited) continue;
        pidfd = pidfd || uninvited;
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t index = 0; index < count; ++index) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + index * sizeof(int), sizeof(int));
            packet.fds.push_back(UniqueFd::adopt(fd));
        }
    }
    if (pidfd) throw ProtocolError("a packet with a process descriptor was refused");
    if ((message.msg_flags & MSG_CTRUNC) != 0) throw ProtocolError("a packet with too many descriptors was refused");
    if (!take_bytes(message, buffer, length)) return std::nullopt;
    packet.bytes = std::move(buffer);
    return packet;
}

std::optional<Packet> receive_plain_packet(FdRef channel, Deadline deadline)
{
    std::string buffer(packet_limit + 1, '\0');
    msghdr message{};
    // Looked at first: without room for it, the kernel reports ancillary data (MSG_CTRUNC, recvmsg(2)) and, as the packet stays where it
    // is, does not have to close anything in our name.
    receive_message(channel, message, buffer, nullptr, 0, MSG_PEEK, deadline);
    if ((message.msg_flags & MSG_CTRUNC) != 0) throw ProtocolError("a packet with a descriptor was refused");
    const std::size_t length = receive_message(channel, message, buffer, nullptr, 0, 0, deadline);
    if (!take_bytes(message, buffer, length)) return std::nullopt;
    return Packet{std::move(buffer), {}};
}

OutgoingRecord::OutgoingRecord(std::string_view bytes, std::vector<int> fds) : bytes_(bytes), fds_(std::move(fds))
{
    if (bytes.size() > record_limit)
        throw Failure(FailureKind::named_file, "the arguments and the environment together are larger than " +
                                                   std::to_string(record_limit) +
                                                   " bytes; pass long text in a file (@FILE) or on standard input");
}

void OutgoingRecord::send(FdRef channel, Deadline deadline)
{
    if (!is_begun_) send_packet(channel, Encoder().number(record_magic).number(bytes_.size()).bytes(), fds_, deadline);
    is_begun_ = true;
    for (; sent_ < bytes_.size(); sent_ += packet_limit)
        send_packet(channel, bytes_.substr(sent_, packet_limit), {}, deadline);
}

void send_record(FdRef channel, std::string_view bytes, const std::vector<int> &fds, Deadline deadline)
{
    OutgoingRecord(bytes, fds).send(channel, deadline);
}

std::optional<Packet> receive_record(FdRef channel, Deadline deadline)
{
    std::optional<Packet> head = receive_packet(channel, deadline);
    if (!head) return std::nullopt;
    Decoder decoder(head->bytes);
    if (decoder.number() != record_magic) throw ProtocolError("the peer speaks another protocol version");
    const std::uint64_t size = decoder.number();
    decoder.end();
    if (size > record_limit && defence_is_on("record-limit"))
        throw ProtocolError("a record larger than " + std::to_string(record_limit) + " bytes was refused");
    Packet record;
    record.fds = std::move(head->fds);
    while (record.bytes.size() < size) {
        // However ready each of many small pieces is, all of them must come in time.
        if (Clock::now() >= deadline) throw DeadlineExceeded("the peer did not send all of it in time");
        std::optional<Packet> piece = receive_packet(channel, deadline);
        if (!piece) throw ProtocolError("the record was cut short");
        if (!piece->fds.empty()) throw ProtocolError("unexpected descriptors inside a record");
        record.bytes += piece->bytes;
        if (record.bytes.size() > size) throw ProtocolError("the record is longer than it said");
    }
    return record;
}

Encoder &Encoder::number(std::uint64_t value)
{
    for (unsigned shift = 0; shift < 64; shift += 8)
        bytes_.push_back(static_cast<char>((value >> shift) & 0xffU));
    return *this;
}

Encoder &Encoder::text(std::string_view value)
{
    number(value.size());
    bytes_.append(value);
    return *this;
}

Encoder &Encoder::texts(const std::vector<std::string> &values)
{
    number(values.size());
    for (const auto &value : values)
        text(value);
    return *this;
}

void Encoder::forget() noexcept
{
    explicit_bzero(bytes_.data(), bytes_.size());
    bytes_.clear();
}

std::uint64_t Decoder::number()
{
    if (rest_.size() < 8) throw ProtocolError("a message ends too early");
    std::uint64_t value = 0;
    for (unsigned index = 0; index < 8; ++index)
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[index])) << (8 * index);
    rest_.remove_prefix(8);
    return value;
}

bool Decoder::flag()
{
    const std::uint64_t value = number();
    if (value > 1) throw ProtocolError("a message carries an impossible flag");
    return value == 1;
}

std::string Decoder::text()
{
    const std::uint64_t size = number();
    if (size > rest_.size()) throw ProtocolError("a message ends too early");
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
}

std::vector<std::string> Decoder::texts(std::size_t limit)
{
    const std::uint64_t count = number();
    // Each text needs eight bytes of length, so a count beyond that is a lie; checked before anything is reserved.
    if (count > limit || count > rest_.size() / 8) throw ProtocolError("a message counts more entries than it holds");
    std::vector<std::string> values;
    values.reserve(count);
    for (std::uint64_t index = 0; index < count; ++index)
        values.push_back(text());
    return values;
}

void Decoder::end() const
{
    if (!rest_.empty()) throw ProtocolError("a message is longer than its fields");
    if (taken_ != descriptors_.size()) throw ProtocolError(other_descriptors);
}

// Packets over a pipe.

static_assert(pipe_packet_limit <= PIPE_BUF);

Pipe make_packet_pipe()
{
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_DIRECT | O_NONBLOCK) != 0) throw_errno("making a pipe for packets");
    Pipe made{UniqueFd::adopt(ends[0]), UniqueFd::adopt(ends[1])};
    constexpr int packets_of_room = 64; // each takes a page
    // best_effort: with less room a writer waits more often.
    static_cast<void>(fcntl(made.writing.get(), F_SETPIPE_SZ, packets_of_room * static_cast<int>(sysconf(_SC_PAGESIZE))));
    return made;
}

void write_packet(FdRef pipe, std::string_view bytes)
{
    if (bytes.empty() || bytes.size() > pipe_packet_limit) throw Failure(ExitStatus::internal, "a packet of this size is never written");
    ssize_t count = 0;
    do
        count = write(pipe.get(), bytes.data(), bytes.size());
    while (count < 0 && errno == EINTR);
    if (count != static_cast<ssize_t>(bytes.size())) throw_errno("writing to the peer");
}

std::optional<std::string> read_packet(FdRef pipe, Deadline deadline)
{
    std::string packet(pipe_packet_limit + 1, '\0');
    for (;;) {
        const ssize_t count = read(pipe.get(), packet.data(), packet.size());
        if (count == 0) return std::nullopt;
        if (count > static_cast<ssize_t>(pipe_packet_limit)) throw ProtocolError("a packet that is too long was refused");
        if (count > 0) {
            packet.resize(static_cast<std::size_t>(count));
            return packet;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN) throw_errno("reading from the peer");
        if (!wait_for_input(pipe, deadline)) throw DeadlineExceeded("the peer did not answer in time");
    }
}

} // namespace pi_agent

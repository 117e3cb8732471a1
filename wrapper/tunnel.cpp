// Frames, each ended by a newline because srun passes on whole lines at once; reading and writing streams without waiting.
#include "wrapper/session_client.hpp"

#include <sys/socket.h>

namespace pi_agent {

namespace {

bool is_ready(FdRef fd, short events) noexcept
{
    pollfd entry{fd.get(), events, 0};
    return poll(&entry, 1, 0) > 0;
}

constexpr char data_kind = 'd';
constexpr char end_kind = 'e';    // no more data
constexpr char broken_kind = 'b'; // nobody takes data any more
constexpr char taken_kind = 't';  // so many bytes of data were taken
constexpr char message_kind = 'm';
constexpr char alive_kind = 'a';

constexpr auto alive_interval = std::chrono::seconds(5);
constexpr auto longest_silence = std::chrono::seconds(60);

// What each side says first: scripts of the cluster's may write something before.
constexpr std::string_view greeting("\0pi-agent\0\n", 11);
constexpr std::size_t most_before_greeting = 1024UL * 1024;

constexpr std::size_t header_size = 6;
constexpr std::size_t tunnel_frame_limit = record_limit + packet_limit;
// Bytes of a stream that are not taken yet: a slow reader holds up its own stream alone.
constexpr std::size_t stream_window = 8 * piece_limit;
// More than all streams and messages of a side that keeps to this: a peer that floods, and reads nothing, takes no more memory.
constexpr std::size_t most_outgoing = 32UL * 1024 * 1024;
constexpr std::size_t reads_at_once = 8;
constexpr auto quiet_of_a_stream = std::chrono::milliseconds(100);
constexpr std::size_t most_at_the_end = 1024UL * 1024; // more than a pty or a pipe holds: the rest is not the agent's

} // namespace

// Reading and writing what others may have open, too, without waiting.

// A pipe is opened a second time: O_NONBLOCK would be everybody's who has it. What cannot be is asked by poll(2) before each call.
DescriptorEnd::DescriptorEnd(UniqueFd fd, For purpose) : fd_(std::move(fd))
{
    const struct stat facts = examine(fd_, "examining a stream");
    is_socket_ = purpose == For::packets || S_ISSOCK(facts.st_mode);
    if (is_socket_) return;
    may_block_ = true;
    if (!S_ISFIFO(facts.st_mode)) return;
    const int flags = purpose == For::reading ? O_RDONLY : O_WRONLY;
    UniqueFd own = UniqueFd::adopt(open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!own) return;
    fd_ = std::move(own);
    may_block_ = false;
}

Outcome DescriptorEnd::read(std::string &piece)
{
    if (may_block_ && !is_ready(fd_, POLLIN)) return Outcome::blocked;
    piece.resize(piece_limit);
    const ssize_t count =
        is_socket_ ? recv(fd_.get(), piece.data(), piece.size(), MSG_DONTWAIT) : ::read(fd_.get(), piece.data(), piece.size());
    const Outcome outcome = outcome_of_read(count);
    if (outcome == Outcome::moved) piece.resize(static_cast<std::size_t>(count));
    return outcome;
}

Outcome DescriptorEnd::write(std::string &piece)
{
    if (may_block_ && !is_ready(fd_, POLLOUT)) return Outcome::blocked;
    const std::size_t size = may_block_ ? std::min<std::size_t>(piece.size(), PIPE_BUF) : piece.size();
    const ssize_t count =
        is_socket_ ? ::send(fd_.get(), piece.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd_.get(), piece.data(), size);
    const Outcome outcome = outcome_of_write(count);
    if (outcome == Outcome::moved) piece.erase(0, static_cast<std::size_t>(count));
    return outcome;
}

// A pty's output and settings, and what is typed.

Outcome PtyEnd::read(std::string &piece)
{
    if (!known_) return Outcome::blocked; // the agent starts once the wrapper has said how its terminal begins
    if (bytes_.empty()) {
        const Outcome outcome = output_.fill(master_.fd());
        if (outcome == Outcome::ended) return Outcome::ended;
        if (outcome == Outcome::moved) master_.fill_pair(output_);
        bytes_ = output_.fresh();
        output_.discard();
        if (look_at_settings()) {
            piece = encode_state(*known_);
            return Outcome::moved;
        }
    }
    if (bytes_.empty()) return Outcome::blocked;
    std::size_t size = std::min(bytes_.size(), terminal_bytes_limit);
    if (size < bytes_.size() && bytes_[size - 1] == '\r') --size; // not cut from its newline
    piece = bytes_tag + bytes_.substr(0, size);
    bytes_.erase(0, size);
    return Outcome::moved;
}

Outcome PtyEnd::write(std::string &piece)
{
    if (piece.starts_with(bytes_tag)) {
        const ssize_t count = ::write(master_.fd().get(), piece.data() + 1, piece.size() - 1);
        if (const Outcome outcome = outcome_of_write(count); outcome != Outcome::moved) return outcome;
        piece.erase(1, static_cast<std::size_t>(count));
        if (piece.size() == 1) piece.clear();
        return Outcome::moved;
    }
    if (piece.starts_with(size_tag))
        master_.resize(decode_size(piece));
    else if (master_.change_to(decode_state(piece).settings) && !known_)
        look_at_settings(); // the wrapper knows them; later it may have heard of the agent's own meanwhile, and is told again
    piece.clear();
    return Outcome::moved;
}

bool PtyEnd::look_at_settings()
{
    const std::optional<termios> now = master_.settings();
    if (!now) return false;
    const TerminalState state{*now, master_.has_other_foreground()};
    if (known_ && are_same(state.settings, known_->settings) && state.other_foreground == known_->other_foreground) return false;
    known_ = state;
    return true;
}

// Frames: a kind, a stream, a length, the bytes, and a newline, because srun passes on whole lines at once, and the rest when it likes.

Tunnel::Tunnel(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out))
{
    for (const int fd : {in_.get(), out_.get()}) {
        const int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) throw_errno("setting up a stream");
    }
    outgoing_ = greeting;
}

void Tunnel::attach(Stream stream, Way way, std::unique_ptr<StreamEnd> end)
{
    Flow &flow = flow_of(stream);
    flow.end = std::move(end);
    flow.reads = way != Way::there_to_here;
    flow.writes = way != Way::here_to_there;
}

void Tunnel::say(std::string_view message)
{
    send(message_kind, Stream::input, message);
}

void Tunnel::send(char kind, Stream stream, std::string_view payload)
{
    if (silent_) return;
    if (outgoing_.size() > most_outgoing) throw ProtocolError("the other side of the session does not read what it asks for");
    outgoing_ += kind;
    outgoing_ += static_cast<char>(stream);
    for (unsigned shift = 0; shift < 32; shift += 8)
        outgoing_ += static_cast<char>((payload.size() >> shift) & 0xffU);
    outgoing_ += payload;
    outgoing_ += '\n';
}

bool Tunnel::may_read(const Flow &flow) noexcept
{
    return flow.end && flow.reads && flow.on_the_way + piece_limit <= stream_window;
}

void Tunnel::add_waits(std::vector<pollfd> &waits) const
{
    waits.push_back({in_ended_ ? -1 : in_.get(), POLLIN, 0});
    waits.push_back({outgoing_.empty() ? -1 : out_.get(), POLLOUT, 0});
    for (const auto &flow : flows_) {
        const auto events = static_cast<short>((may_read(flow) ? POLLIN : 0) | (flow.pieces.empty() ? 0 : POLLOUT));
        waits.push_back({flow.end && events != 0 ? flow.end->fd().get() : -1, events, 0});
    }
}

int Tunnel::patience(int milliseconds) noexcept
{
    constexpr int most = std::chrono::milliseconds(alive_interval).count();
    return milliseconds < 0 ? most : std::min(milliseconds, most);
}

bool Tunnel::has_ended() const noexcept
{
    return in_ended_ || (in_begun_ && Clock::now() - last_heard_ > longest_silence);
}

void Tunnel::serve(const Hear &hear)
{
    receive();
    for (std::size_t index = 0; index < stream_count; ++index)
        write_pieces(flows_[index], static_cast<Stream>(index));
    for (const std::string &message : std::exchange(messages_, {}))
        hear(message);
    for (std::size_t index = 0; index < stream_count; ++index)
        read_piece(flows_[index], static_cast<Stream>(index));
    if (in_begun_ && outgoing_.empty() && Clock::now() - last_said_ >= alive_interval) send(alive_kind, Stream::input, "");
    flush();
}

void Tunnel::receive()
{
    std::array<char, piece_limit> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init): read into
    for (std::size_t round = 0; round < reads_at_once && !in_ended_; ++round) {
        const ssize_t count = ::read(in_.get(), buffer.data(), buffer.size());
        const Outcome outcome = outcome_of_read(count);
        in_ended_ = outcome == Outcome::ended;
        if (outcome != Outcome::moved) break;
        incoming_.append(buffer.data(), static_cast<std::size_t>(count));
        last_heard_ = Clock::now();
    }
    take_frames();
}

void Tunnel::take_frames()
{
    std::size_t at = 0;
    if (!in_begun_) {
        at = incoming_.find(greeting);
        if (at == std::string::npos && incoming_.size() > most_before_greeting) throw ProtocolError("the node says something else than pi");
        if (at == std::string::npos) return;
        at += greeting.size();
        in_begun_ = true;
    }
    while (incoming_.size() - at >= header_size) {
        std::size_t size = 0;
        for (std::size_t byte = 0; byte < 4; ++byte)
            size |= static_cast<std::size_t>(static_cast<unsigned char>(incoming_[at + 2 + byte])) << (8 * byte);
        const auto stream = static_cast<unsigned char>(incoming_[at + 1]);
        if (size > tunnel_frame_limit || stream >= stream_count)
            throw ProtocolError("the other side of the session speaks another language");
        if (incoming_.size() - at < header_size + size + 1) break;
        if (incoming_[at + header_size + size] != '\n') throw ProtocolError("the other side of the session speaks another language");
        take_frame(incoming_[at], static_cast<Stream>(stream), std::string_view(incoming_).substr(at + header_size, size));
        at += header_size + size + 1;
    }
    incoming_.erase(0, at);
}

void Tunnel::take_frame(char kind, Stream stream, std::string_view payload)
{
    Flow &flow = flow_of(stream);
    switch (kind) {
    case data_kind:
        if (flow.end && flow.writes && !payload.empty()) {
            flow.held += payload.size();
            if (flow.held > stream_window) throw ProtocolError("the other side of the session sends more than is taken");
            flow.pieces.push_back({std::string(payload), payload.size()});
        } else {
            send(taken_kind, stream, Encoder().number(payload.size()).bytes()); // nobody takes it, and nobody waits for that
        }
        return;
    case end_kind:
        flow.ends_behind = true;
        return;
    case broken_kind:
        flow.reads = false;
        if (stream != Stream::terminal) flow.end.reset();
        return;
    case taken_kind: {
        Decoder decoder(payload);
        flow.on_the_way -= std::min<std::size_t>(flow.on_the_way, decoder.number());
        return;
    }
    case message_kind:
        messages_.emplace_back(payload);
        return;
    case alive_kind:
        return;
    default:
        throw ProtocolError("the other side of the session says what nobody understands");
    }
}

void Tunnel::write_pieces(Flow &flow, Stream stream)
{
    while (flow.end && !flow.pieces.empty()) {
        Piece &piece = flow.pieces.front();
        const Outcome state = flow.end->write(piece.rest);
        if (state == Outcome::blocked) return;
        if (state == Outcome::moved && !piece.rest.empty()) continue;
        send(taken_kind, stream, Encoder().number(piece.size).bytes());
        flow.held -= piece.size;
        flow.pieces.pop_front();
        if (state != Outcome::ended) continue;
        send(broken_kind, stream, "");
        flow.writes = false;
        flow.held = 0;
        for (const Piece &left : std::exchange(flow.pieces, {}))
            send(taken_kind, stream, Encoder().number(left.size).bytes());
        if (stream != Stream::terminal) flow.end.reset();
    }
    if (flow.ends_behind && flow.pieces.empty()) flow.end.reset(); // of the terminal, too: who ends it has nothing more to hear
}

void Tunnel::read_piece(Flow &flow, Stream stream)
{
    if (!may_read(flow)) return;
    std::string piece;
    switch (flow.end->read(piece)) {
    case Outcome::moved:
        send(data_kind, stream, piece);
        flow.on_the_way += piece.size();
        last_read_ = Clock::now();
        read_while_finishing_ += finishing_ ? piece.size() : 0;
        if (read_while_finishing_ > most_at_the_end) end_reading(flow, stream);
        return;
    case Outcome::ended:
        return end_reading(flow, stream);
    case Outcome::blocked:
        if (finishing_ && Clock::now() - last_read_ >= quiet_of_a_stream) end_reading(flow, stream);
    }
}

void Tunnel::end_reading(Flow &flow, Stream stream)
{
    flow.reads = false;
    send(end_kind, stream, "");
    if (stream != Stream::terminal) flow.end.reset();
}

void Tunnel::flush()
{
    while (!outgoing_.empty()) {
        const ssize_t count = ::write(out_.get(), outgoing_.data(), outgoing_.size());
        const Outcome outcome = outcome_of_write(count);
        if (outcome == Outcome::ended) outgoing_.clear(); // nobody is there, which the other direction tells
        if (outcome != Outcome::moved) return;
        outgoing_.erase(0, static_cast<std::size_t>(count));
        last_said_ = Clock::now();
    }
}

void Tunnel::fall_silent() noexcept
{
    silent_ = true;
    for (Flow &flow : flows_)
        flow.reads = false;
}

void Tunnel::finish() noexcept
{
    finishing_ = true;
    last_read_ = Clock::now();
}

bool Tunnel::has_read_all() const noexcept
{
    return std::none_of(flows_.begin(), flows_.end(), [](const Flow &flow) { return flow.end && flow.reads; });
}

bool Tunnel::has_written_all() const noexcept
{
    return std::all_of(flows_.begin(), flows_.end(), [](const Flow &flow) { return flow.pieces.empty(); });
}

} // namespace pi_agent

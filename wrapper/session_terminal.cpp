// A pty's master, and its packets.
#include "wrapper/session_terminal.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <limits>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int pair_patience_milliseconds = 5; // the kernel hands both bytes over in one write, or at once
constexpr int packets_at_once = 16;           // of settings

Decoder of_tag(std::string_view packet, char tag)
{
    if (packet.empty() || packet.front() != tag) throw ProtocolError("the session's terminal says something else than it should");
    return Decoder(packet.substr(1));
}

template <typename Number>
Number read_number(Decoder &decoder)
{
    const std::uint64_t number = decoder.number();
    if (number > std::numeric_limits<Number>::max()) throw ProtocolError("a number of the session's terminal is out of bounds");
    return static_cast<Number>(number);
}

Pump::Outcome outcome_of_failure() noexcept
{
    return errno == EAGAIN || errno == EINTR ? Pump::Outcome::blocked : Pump::Outcome::sink_ended;
}

} // namespace

PtyMaster::PtyMaster(UniqueFd master) : master_(std::move(master))
{
    if (fcntl(master_.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("setting up the session's terminal");
}

void PtyMaster::fill_pair(Pump &output)
{
    pollfd more{master_.get(), POLLIN, 0};
    while (output.ends_with('\r') && poll(&more, 1, pair_patience_milliseconds) > 0 && output.fill_further(master_)) {
    }
}

Pump::Outcome PtyMaster::drain(Pump &input)
{
    return input.drain(master_, std::numeric_limits<std::size_t>::max());
}

std::optional<termios> PtyMaster::settings() const
{
    termios now{};
    return tcgetattr(master_.get(), &now) == 0 ? std::optional(now) : std::nullopt;
}

bool PtyMaster::change_to(const termios &settings)
{
    return tcsetattr(master_.get(), TCSANOW, &settings) == 0;
}

void PtyMaster::resize(const WindowSize &size) noexcept
{
    const winsize window{size.rows, size.columns, size.x_pixels, size.y_pixels};
    ioctl(master_.get(), TIOCSWINSZ, &window); // best_effort: see the header
}

bool PtyMaster::has_other_foreground() const
{
    pid_t group = 0;
    pid_t session = 0;
    if (ioctl(master_.get(), TIOCGPGRP, &group) != 0) group = 0;
    if (ioctl(master_.get(), TIOCGSID, &session) != 0) session = 0;
    return group != session;
}

Pump::Outcome DistantTerminal::fill(Pump &output)
{
    std::array<char, packet_limit> packet; // NOLINT(cppcoreguidelines-pro-type-member-init): read into
    // Then the keyboard and signals come first: a node may say nothing but settings, without end.
    for (int packets = 0; packets < packets_at_once; ++packets) {
        const ssize_t count = recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Pump::Outcome::blocked;
        if (count <= 0) return Pump::Outcome::source_ended;
        const std::string_view bytes(packet.data(), static_cast<std::size_t>(count));
        if (bytes.front() == bytes_tag) {
            output.replace(bytes.substr(1));
            return Pump::Outcome::moved;
        }
        const TerminalState state = decode_state(bytes);
        known_ = state.settings;
        other_foreground_ = state.other_foreground;
    }
    return Pump::Outcome::blocked;
}

Pump::Outcome DistantTerminal::drain(Pump &input)
{
    while (!input.wants_input()) {
        const std::string_view piece = input.fresh().substr(0, terminal_bytes_limit);
        if (send(socket_.get(), (bytes_tag + std::string(piece)).data(), piece.size() + 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return outcome_of_failure();
        input.take(piece.size());
    }
    return Pump::Outcome::moved;
}

bool DistantTerminal::change_to(const termios &settings)
{
    termios wanted = settings;
    // What every pty has, whatever it is told: so the node's answers compare with this.
    wanted.c_cflag = (wanted.c_cflag & ~static_cast<tcflag_t>(CSIZE | PARENB)) | CS8 | CREAD;
    const std::string packet = encode_state({wanted, false});
    // Full of keys that the agent does not read, which may wait to be continued by us: its terminal stays as it is.
    if (send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return errno == EAGAIN && known_;
    known_ = wanted;
    return true;
}

void DistantTerminal::resize(const WindowSize &size) noexcept
{
    const std::string packet = encode_size(size);
    send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL); // best_effort: see the header
}

std::unique_ptr<SessionTerminal> open_session_terminal(UniqueFd fd)
{
    if (S_ISSOCK(examine(fd, "examining the session's terminal").st_mode)) return std::make_unique<DistantTerminal>(std::move(fd));
    return std::make_unique<PtyMaster>(std::move(fd));
}

std::string encode_state(const TerminalState &state)
{
    Encoder encoder;
    const termios &settings = state.settings;
    for (const unsigned number :
         {settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag, settings.c_ispeed, settings.c_ospeed})
        encoder.number(number);
    encoder.text(std::string(std::begin(settings.c_cc), std::end(settings.c_cc)));
    encoder.number(state.other_foreground ? 1 : 0);
    return settings_tag + encoder.bytes();
}

TerminalState decode_state(std::string_view packet)
{
    Decoder decoder = of_tag(packet, settings_tag);
    TerminalState state;
    termios &settings = state.settings;
    for (unsigned *number :
         {&settings.c_iflag, &settings.c_oflag, &settings.c_cflag, &settings.c_lflag, &settings.c_ispeed, &settings.c_ospeed})
        *number = read_number<unsigned>(decoder);
    const std::string characters = decoder.text();
    if (characters.size() != std::size(settings.c_cc)) throw ProtocolError("the session's terminal has other control characters");
    std::copy(characters.begin(), characters.end(), std::begin(settings.c_cc));
    state.other_foreground = decoder.flag();
    decoder.end();
    return state;
}

std::string encode_size(const WindowSize &size)
{
    Encoder encoder;
    for (const std::uint16_t number : {size.rows, size.columns, size.x_pixels, size.y_pixels})
        encoder.number(number);
    return size_tag + encoder.bytes();
}

WindowSize decode_size(std::string_view packet)
{
    Decoder decoder = of_tag(packet, size_tag);
    WindowSize size;
    for (std::uint16_t *number : {&size.rows, &size.columns, &size.x_pixels, &size.y_pixels})
        *number = read_number<std::uint16_t>(decoder);
    decoder.end();
    return size;
}

} // namespace pi_agent

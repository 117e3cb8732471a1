// A pty's master, its packets, and the user's terminal tied to it.
#include "wrapper/terminal_link.hpp"

#include <algorithm>
#include <iterator>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace pi_agent {

namespace {

constexpr int pair_patience_milliseconds = 5; // the kernel hands both bytes over in one write, or at once
constexpr int packets_at_once = 16;           // of settings

constexpr auto quiet_at_the_end = std::chrono::milliseconds(100); // the kernel hands over what was written in the background
constexpr std::size_t kernels_buffer = 1024UL * 1024;             // more than a pty holds

} // namespace

// A pty's master, and its packets.

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

std::optional<termios> PtyMaster::settings() const
{
    termios now{};
    return tcgetattr(master_.get(), &now) == 0 ? std::optional(now) : std::nullopt;
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

Outcome DistantTerminal::fill(Pump &output)
{
    std::array<char, packet_limit> packet; // NOLINT(cppcoreguidelines-pro-type-member-init): read into
    // Then the keyboard and signals come first: a node may say nothing but settings, without end.
    for (int packets = 0; packets < packets_at_once; ++packets) {
        const ssize_t count = recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
        if (const Outcome outcome = outcome_of_read(count); outcome != Outcome::moved) return outcome;
        const std::string_view bytes(packet.data(), static_cast<std::size_t>(count));
        if (bytes.front() == bytes_tag) {
            output.replace(bytes.substr(1));
            return Outcome::moved;
        }
        known_ = decode_state(bytes);
    }
    return Outcome::blocked;
}

Outcome DistantTerminal::drain(Pump &input)
{
    while (!input.wants_input()) {
        const std::string_view piece = input.fresh().substr(0, terminal_bytes_limit);
        const ssize_t count = send(socket_.get(), (bytes_tag + std::string(piece)).data(), piece.size() + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0) return outcome_of_write(count);
        input.take(piece.size());
    }
    return Outcome::moved;
}

bool DistantTerminal::change_to(const termios &settings)
{
    termios wanted = settings;
    // What every pty has, whatever it is told: so the node's answers compare with this.
    wanted.c_cflag = (wanted.c_cflag & ~static_cast<tcflag_t>(CSIZE | PARENB)) | CS8 | CREAD;
    const std::string packet = encode_state({wanted, false});
    // Full of keys that the agent does not read, which may wait to be continued by us: its terminal stays as it is.
    if (send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return errno == EAGAIN && known_;
    known_ = {wanted, has_other_foreground()};
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

std::string_view after_tag(std::string_view packet, char tag)
{
    if (packet.empty() || packet.front() != tag) throw ProtocolError("the session's terminal says something else than it should");
    return packet.substr(1);
}

// The user's terminal and the session's pty tied together.

TerminalLink::TerminalLink(UserTerminal &terminal, std::unique_ptr<SessionTerminal> master, bool reaches_clipboard)
    : terminal_(terminal), master_(std::move(master)), reaches_clipboard_(reaches_clipboard),
      filter_((terminal.settings().c_iflag & IUTF8) != 0)
{
    copy_settings();
    resize();
}

// The pty begins with the user's own settings (erase character, UTF-8, …).
void TerminalLink::copy_settings()
{
    termios settings = terminal_.settings();
    // A background job that writes is stopped where its user wants that. One in the foreground is not, though its agent has not asked yet.
    if (terminal_.in_foreground()) settings.c_lflag &= ~static_cast<tcflag_t>(TOSTOP);
    const std::optional<termios> set = master_->change_to(settings) ? master_->settings() : std::nullopt;
    if (!set) throw_errno("setting up the session's terminal");
    initial_ = *set;
}

TerminalLink::~TerminalLink()
{
    if (!suspended_) write_now(modes_.leave_sequence());
}

std::vector<pollfd> TerminalLink::waits() const
{
    short terminal_events = 0;
    if (terminal_.is_raw() && input_.wants_input() && !master_ended_ && !finishing_) terminal_events |= POLLIN;
    if (!output_.wants_input()) terminal_events |= POLLOUT;
    short master_events = 0;
    if (output_.wants_input()) master_events |= POLLIN;
    if (!input_.wants_input()) master_events |= POLLOUT;
    return {pollfd{terminal_ended_ ? -1 : terminal_.fd().get(), terminal_events, 0},
            pollfd{master_ended_ || master_events == 0 ? -1 : master_->fd().get(), master_events, 0}};
}

void TerminalLink::serve(const std::vector<pollfd> &waits)
{
    if (!output_.wants_input()) last_output_ = Clock::now(); // no silence of the agent: it was not listened to while the terminal was slow
    serve_master(waits[1].revents);
    serve_terminal(waits[0].revents);
    if (finishing_ && !master_->tells_its_end() && output_.wants_input() && Clock::now() - last_output_ >= quiet_at_the_end)
        master_ended_ = true;
}

void TerminalLink::finish() noexcept
{
    finishing_ = true;
    last_output_ = Clock::now();
    still_taken_ = kernels_buffer;
    input_.discard();
}

void TerminalLink::serve_master(short events)
{
    if ((events & POLLOUT) != 0 && master_->drain(input_) == Outcome::ended) input_.discard();
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0 || !output_.wants_input()) return;
    read_master();
    write_out(); // most often it takes all at once, and no further poll is needed
}

void TerminalLink::read_master()
{
    const Outcome outcome = master_->fill(output_);
    if (outcome == Outcome::ended) {
        master_ended_ = true;
        input_.discard();
    }
    if (outcome != Outcome::moved) return;
    if (finishing_ && !master_->tells_its_end()) {
        last_output_ = Clock::now();
        if (output_.fresh().size() >= still_taken_) master_ended_ = true;
        still_taken_ -= std::min(still_taken_, output_.fresh().size());
    }
    // A shell that brings a running job back to the foreground does not say so.
    if (suspended_ && !has_keyboard_ && terminal_.in_foreground()) resume();
    leave_output_processing_to_terminal();
    if (!reaches_clipboard_) output_.replace(filter_.filter(output_.fresh()));
    modes_.watch(output_.fresh());
}

// The user's terminal processes output (it puts a carriage return before each newline) for everybody who writes to it, as long as the
// agent leaves its own as it was. The pty has done that already: here it is undone, and both together are as one.
void TerminalLink::leave_output_processing_to_terminal()
{
    if (terminal_.is_output_raw()) return;
    const termios now = master_->settings().value_or(initial_);       // the agent is gone
    if (now.c_oflag != initial_.c_oflag) terminal_.make_output_raw(); // for good: what is on the way may be of either kind
    constexpr tcflag_t both = OPOST | ONLCR;
    if (terminal_.is_output_raw() || (now.c_oflag & both) != both) return;
    master_->fill_pair(output_);
    output_.drop_before('\r', '\n');
}

void TerminalLink::write_out()
{
    if (terminal_ended_) return output_.discard();
    if (!terminal_.is_own()) return; // may block: only after poll(2)
    if (output_.drain(terminal_.fd(), SIZE_MAX) != Outcome::ended) return;
    terminal_ended_ = true;
    output_.discard();
}

void TerminalLink::serve_terminal(short events)
{
    if ((events & POLLOUT) != 0) {
        const std::size_t at_once = terminal_.is_own() ? SIZE_MAX : careful_write;
        if (output_.drain(terminal_.fd(), at_once) == Outcome::ended) terminal_ended_ = true;
    }
    if ((events & (POLLHUP | POLLERR)) != 0) terminal_ended_ = true;
    if ((events & POLLIN) != 0 && input_.wants_input() && input_.fill(terminal_.fd()) == Outcome::ended) terminal_ended_ = true;
    if (!input_.wants_input() && !master_ended_ && master_->drain(input_) == Outcome::ended) input_.discard();
    if (terminal_ended_) output_.discard();
}

void TerminalLink::give_keyboard()
{
    has_keyboard_ = true;
    const std::optional<termios> now = master_->settings();
    // In the background the terminal was as another program had it, an editor or a shell's prompt.
    if (terminal_.in_foreground() && !terminal_.is_raw() && now && are_same(*now, initial_)) copy_settings();
    resume();
}

bool TerminalLink::keyboard_was_taken()
{
    if (has_keyboard_ || master_ended_ || finishing_) return false;
    const std::optional<termios> now = master_->settings();
    return now && (now->c_lflag != initial_.c_lflag || now->c_iflag != initial_.c_iflag || master_->has_other_foreground());
}

void TerminalLink::suspend()
{
    if (suspended_) return;
    const Deadline deadline = in_seconds(flush_patience_seconds);
    for (;;) {
        while (!output_.wants_input() && !terminal_ended_ && Clock::now() < deadline) {
            pollfd entry{terminal_.fd().get(), POLLOUT, 0};
            if (poll(&entry, 1, 100) > 0) serve_terminal(entry.revents);
        }
        if (!output_.wants_input() || master_ended_) break;
        read_master();
        if (output_.wants_input()) break;
    }
    write_now(modes_.leave_sequence());
    terminal_.restore();
    suspended_ = true;
}

void TerminalLink::resume()
{
    if (!terminal_.in_foreground()) return terminal_.restore();
    if (has_keyboard_) terminal_.make_raw();
    if (suspended_) write_now(modes_.enter_sequence());
    suspended_ = false;
    resize();
}

} // namespace pi_agent

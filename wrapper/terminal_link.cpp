// The user's terminal and the session's pty tied together.
#include "wrapper/terminal_link.hpp"

#include "common/base/error.hpp"

#include <fcntl.h>
#include <limits>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t careful_write = 256;                        // what a terminal always takes once poll(2) says that it takes something
constexpr auto quiet_at_the_end = std::chrono::milliseconds(100); // the kernel hands over what was written in the background
constexpr std::size_t kernels_buffer = 1024UL * 1024;             // more than a pty holds
constexpr int pair_patience_milliseconds = 5;                     // the kernel hands both bytes over in one write, or at once
constexpr int flush_patience_seconds = 1;                         // for a terminal that is paused (Ctrl-S) or read by nobody

// The group in the foreground of the agent's end, and the session that it is the terminal of: pi-agent-exec leads that, and is in the
// foreground first. 0 without one.
pid_t foreground_of(FdRef master) noexcept
{
    pid_t group = 0;
    return ioctl(master.get(), TIOCGPGRP, &group) == 0 ? group : 0;
}

pid_t session_of(FdRef master) noexcept
{
    pid_t session = 0;
    return ioctl(master.get(), TIOCGSID, &session) == 0 ? session : 0;
}

} // namespace

TerminalLink::TerminalLink(UserTerminal &terminal, UniqueFd master, bool reaches_clipboard)
    : terminal_(terminal), master_(std::move(master)), reaches_clipboard_(reaches_clipboard),
      filter_((terminal.settings().c_iflag & IUTF8) != 0)
{
    if (fcntl(master_.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("setting up the session's terminal");
    copy_settings();
    resize();
}

// The pty begins with the user's own settings (erase character, UTF-8, …).
void TerminalLink::copy_settings()
{
    termios settings = terminal_.settings();
    // A background job that writes is stopped where its user wants that. One in the foreground is not, though its agent has not asked yet.
    if (terminal_.in_foreground()) settings.c_lflag &= ~static_cast<tcflag_t>(TOSTOP);
    if (tcsetattr(master_.get(), TCSANOW, &settings) != 0 || tcgetattr(master_.get(), &initial_) != 0)
        throw_errno("setting up the session's terminal");
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
            pollfd{master_ended_ || master_events == 0 ? -1 : master_.get(), master_events, 0}};
}

void TerminalLink::serve(const std::vector<pollfd> &waits)
{
    if (!output_.wants_input()) last_output_ = Clock::now(); // no silence of the agent: it was not listened to while the terminal was slow
    serve_master(waits[1].revents);
    serve_terminal(waits[0].revents);
    if (finishing_ && output_.wants_input() && Clock::now() - last_output_ >= quiet_at_the_end) master_ended_ = true;
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
    if ((events & POLLOUT) != 0 && input_.drain(master_, std::numeric_limits<std::size_t>::max()) == Pump::Outcome::sink_ended)
        input_.discard();
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0 || !output_.wants_input()) return;
    read_master();
    write_out(); // most often it takes all at once, and no further poll is needed
}

void TerminalLink::read_master()
{
    const Pump::Outcome outcome = output_.fill(master_);
    if (outcome == Pump::Outcome::source_ended) {
        master_ended_ = true;
        input_.discard();
    }
    if (outcome != Pump::Outcome::moved) return;
    if (finishing_) {
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
    termios now{};
    if (tcgetattr(master_.get(), &now) != 0) now = initial_;          // the agent is gone
    if (now.c_oflag != initial_.c_oflag) terminal_.make_output_raw(); // for good: what is on the way may be of either kind
    constexpr tcflag_t both = OPOST | ONLCR;
    if (terminal_.is_output_raw() || (now.c_oflag & both) != both) return;
    // A pair may be cut in two.
    pollfd more{master_.get(), POLLIN, 0};
    while (output_.ends_with('\r') && poll(&more, 1, pair_patience_milliseconds) > 0 && output_.fill_further(master_)) {
    }
    output_.drop_before('\r', '\n');
}

void TerminalLink::write_out()
{
    if (terminal_ended_) return output_.discard();
    if (!terminal_.is_own()) return; // may block: only after poll(2)
    if (output_.drain(terminal_.fd(), std::numeric_limits<std::size_t>::max()) != Pump::Outcome::sink_ended) return;
    terminal_ended_ = true;
    output_.discard();
}

void TerminalLink::serve_terminal(short events)
{
    if ((events & POLLOUT) != 0) {
        const std::size_t at_once = terminal_.is_own() ? std::numeric_limits<std::size_t>::max() : careful_write;
        if (output_.drain(terminal_.fd(), at_once) == Pump::Outcome::sink_ended) terminal_ended_ = true;
    }
    if ((events & (POLLHUP | POLLERR)) != 0) terminal_ended_ = true;
    if ((events & POLLIN) != 0 && input_.wants_input() && input_.fill(terminal_.fd()) == Pump::Outcome::source_ended)
        terminal_ended_ = true;
    if (!input_.wants_input() && !master_ended_ &&
        input_.drain(master_, std::numeric_limits<std::size_t>::max()) == Pump::Outcome::sink_ended)
        input_.discard();
    if (terminal_ended_) output_.discard();
}

void TerminalLink::resize()
{
    const WindowSize now = terminal_.size();
    const winsize size{now.rows, now.columns, now.x_pixels, now.y_pixels};
    ioctl(master_.get(), TIOCSWINSZ, &size); // best_effort: a pty whose agent is gone needs no size
}

void TerminalLink::give_keyboard()
{
    has_keyboard_ = true;
    termios now{};
    // In the background the terminal was as another program had it, an editor or a shell's prompt.
    if (terminal_.in_foreground() && !terminal_.is_raw() && tcgetattr(master_.get(), &now) == 0 && are_same(now, initial_)) copy_settings();
    resume();
}

bool TerminalLink::keyboard_was_taken()
{
    if (has_keyboard_ || master_ended_ || finishing_) return false;
    termios now{};
    if (tcgetattr(master_.get(), &now) != 0) return false;
    return now.c_lflag != initial_.c_lflag || now.c_iflag != initial_.c_iflag || foreground_of(master_) != session_of(master_);
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

void TerminalLink::write_now(std::string_view bytes) noexcept
{
    const Deadline deadline = in_seconds(flush_patience_seconds);
    while (!bytes.empty() && !terminal_ended_ && Clock::now() < deadline) {
        pollfd entry{terminal_.fd().get(), POLLOUT, 0};
        if (poll(&entry, 1, 100) <= 0) continue;
        const ssize_t count = write(terminal_.fd().get(), bytes.data(), std::min(bytes.size(), careful_write));
        if (count > 0)
            bytes.remove_prefix(static_cast<std::size_t>(count));
        else if (count < 0 && errno != EAGAIN && errno != EINTR)
            return;
    }
}

} // namespace pi_agent

// The user's terminal and the session's pty tied together.
#include "wrapper/terminal_link.hpp"

#include "common/error.hpp"

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
constexpr int flush_patience_seconds = 1;                         // for a terminal that is paused (Ctrl-S) or read by nobody

} // namespace

TerminalLink::TerminalLink(UserTerminal &terminal, UniqueFd master) : terminal_(terminal), master_(std::move(master))
{
    if (fcntl(master_.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("setting up the session's terminal");
    terminal_.copy_settings_to(master_);
    resize();
    if (terminal_.in_foreground()) terminal_.make_raw();
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
    modes_.watch(output_.fresh());
    write_out(); // most often it takes all at once, and no further poll is needed
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

bool TerminalLink::agent_reads_keys() const noexcept
{
    termios settings{};
    return tcgetattr(master_.get(), &settings) == 0 && (settings.c_lflag & static_cast<tcflag_t>(ICANON)) == 0;
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
        if (!output_.wants_input() || output_.fill(master_) != Pump::Outcome::moved) break;
        modes_.watch(output_.fresh());
    }
    write_now(modes_.leave_sequence());
    terminal_.restore();
    suspended_ = true;
}

void TerminalLink::resume()
{
    if (!terminal_.in_foreground()) return;
    terminal_.make_raw();
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

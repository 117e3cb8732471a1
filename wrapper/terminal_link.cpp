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
constexpr int flush_patience_seconds = 1;                         // for a terminal that is paused (Ctrl-S) or read by nobody

} // namespace

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
    if ((events & POLLOUT) != 0 && master_->drain(input_) == Pump::Outcome::sink_ended) input_.discard();
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0 || !output_.wants_input()) return;
    read_master();
    write_out(); // most often it takes all at once, and no further poll is needed
}

void TerminalLink::read_master()
{
    const Pump::Outcome outcome = master_->fill(output_);
    if (outcome == Pump::Outcome::source_ended) {
        master_ended_ = true;
        input_.discard();
    }
    if (outcome != Pump::Outcome::moved) return;
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
    if (!input_.wants_input() && !master_ended_ && master_->drain(input_) == Pump::Outcome::sink_ended) input_.discard();
    if (terminal_ended_) output_.discard();
}

void TerminalLink::resize()
{
    master_->resize(terminal_.size());
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
    if (!now) return false;
    return now->c_lflag != initial_.c_lflag || now->c_iflag != initial_.c_iflag || master_->has_other_foreground();
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

// Connects the user's terminal with the session's pty: bytes in both directions, size, modes, suspension.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"
#include "wrapper/clipboard_filter.hpp"
#include "wrapper/pump.hpp"
#include "wrapper/session_terminal.hpp"
#include "wrapper/terminal_modes.hpp"
#include "wrapper/user_terminal.hpp"

#include <memory>
#include <poll.h>
#include <vector>

namespace pi_agent {

class TerminalLink {
public:
    // Sets up the pty like the user's terminal, which does not change.
    TerminalLink(UserTerminal &terminal, std::unique_ptr<SessionTerminal> master, bool reaches_clipboard = true);
    TerminalLink(const TerminalLink &) = delete;
    TerminalLink &operator=(const TerminalLink &) = delete;
    ~TerminalLink(); // leaves the agent's modes; the terminal restores its own settings

    // The entries for poll(2); serve() takes them back afterwards.
    [[nodiscard]] std::vector<pollfd> waits() const;
    void serve(const std::vector<pollfd> &waits);

    void resize();
    // The agent has ended. No key goes to others that may hold its end of the pty, and only what the kernel still has is shown.
    void finish() noexcept;
    // The agent's last byte has been written, or can no longer be.
    [[nodiscard]] bool is_drained() const noexcept { return master_ended_ && output_.wants_input(); }
    // The user's terminal is gone (hang-up).
    [[nodiscard]] bool is_dead() const noexcept { return terminal_ended_; }
    // From now on the user's keys go to the agent, whenever the job is in the foreground. Before, no key is read: what was typed ahead is
    // for the shell.
    void give_keyboard();
    [[nodiscard]] bool has_keyboard() const noexcept { return has_keyboard_; }
    // True once if the agent took the keyboard silently: it changed its terminal from the background, or put another group into the
    // foreground.
    bool keyboard_was_taken();
    // Writes out what the agent has written so far, then restores the terminal as the shell left it.
    void suspend();
    // After a stop, or when the job came into the foreground. In the background nothing happens.
    void resume();
    // The agent has the keyboard, but is in the background: no key is read, and output appears as from other background jobs.
    [[nodiscard]] bool is_waiting_for_foreground() const noexcept
    {
        return has_keyboard_ && !terminal_.is_raw() && !terminal_ended_ && !master_ended_;
    }

private:
    void serve_terminal(short events);
    void serve_master(short events);
    void read_master();
    void leave_output_processing_to_terminal();
    void write_out();
    void write_now(std::string_view bytes) noexcept;
    void copy_settings();

    UserTerminal &terminal_;
    std::unique_ptr<SessionTerminal> master_;
    Pump input_;  // keyboard to agent
    Pump output_; // agent to screen
    bool reaches_clipboard_;
    ClipboardFilter filter_;
    TerminalModes modes_;
    termios initial_{}; // the pty's first settings
    bool master_ended_ = false;
    bool terminal_ended_ = false;
    bool has_keyboard_ = false;
    bool suspended_ = false;
    bool finishing_ = false;
    Deadline last_output_{};      // the start of finishing, or the last output
    std::size_t still_taken_ = 0; // bytes, while finishing
};

} // namespace pi_agent

// The session's pty, here or on a node of the cluster, and the user's terminal tied to it.
#pragma once

#include "wrapper/terminal_output.hpp"
#include "wrapper/user_terminal.hpp"

#include <memory>

namespace pi_agent {

// --- What a terminal on a node says in packets: the first byte says which.

constexpr char bytes_tag = 'B';                                // followed by what was typed, or shown
constexpr std::size_t terminal_bytes_limit = packet_limit / 2; // of those
constexpr char settings_tag = 'S';
constexpr char size_tag = 'W';

struct TerminalState {
    termios settings{};
    bool other_foreground = false;

    static void fields(auto &archive, auto &self)
    {
        constexpr const char *out_of_bounds = "a number of the session's terminal is out of bounds";
        auto &settings = self.settings;
        for (auto *number :
             {&settings.c_iflag, &settings.c_oflag, &settings.c_cflag, &settings.c_lflag, &settings.c_ispeed, &settings.c_ospeed})
            archive.bounded(*number, UINT32_MAX, out_of_bounds);
        for (auto &character : settings.c_cc)
            archive.bounded(character, UINT8_MAX, out_of_bounds);
        archive(self.other_foreground);
    }
};
struct TerminalSize {
    WindowSize size{};

    static void fields(auto &archive, auto &self)
    {
        for (auto *number : {&self.size.rows, &self.size.columns, &self.size.x_pixels, &self.size.y_pixels})
            archive.bounded(*number, UINT16_MAX, "a number of the session's terminal is out of bounds");
    }
};
// Of a packet with that tag. Throws ProtocolError for another.
std::string_view after_tag(std::string_view packet, char tag);

inline std::string encode_state(const TerminalState &state)
{
    return settings_tag + encode(state);
}
inline std::string encode_size(const WindowSize &size)
{
    return size_tag + encode(TerminalSize{size});
}
inline TerminalState decode_state(std::string_view packet)
{
    return decode_fields<TerminalState>(after_tag(packet, settings_tag));
}
inline WindowSize decode_size(std::string_view packet)
{
    return decode_fields<TerminalSize>(after_tag(packet, size_tag)).size;
}

// The terminal of a session as its wrapper holds it: the pty's master, here or on a node of the cluster.
class SessionTerminal {
public:
    SessionTerminal() = default;
    SessionTerminal(const SessionTerminal &) = delete;
    SessionTerminal &operator=(const SessionTerminal &) = delete;
    virtual ~SessionTerminal() = default;

    [[nodiscard]] virtual FdRef fd() const noexcept = 0; // for poll(2)
    virtual Outcome fill(Pump &output) = 0;
    // Reads on after a carriage return at the end: it and its newline may be cut in two.
    virtual void fill_pair(Pump &output) = 0;
    virtual Outcome drain(Pump &input) = 0;
    // None once the agent is gone.
    [[nodiscard]] virtual std::optional<termios> settings() const = 0;
    // False if it cannot be changed (errno).
    virtual bool change_to(const termios &settings) = 0;
    virtual void resize(const WindowSize &size) noexcept = 0; // a pty whose agent is gone needs no size
    // Another group than the one that leads the session, pi-agent-exec's, is in the foreground.
    [[nodiscard]] virtual bool has_other_foreground() const = 0;
    // Whether the end of the agent's output is told, however late it comes.
    [[nodiscard]] virtual bool tells_its_end() const noexcept = 0;
};

// On this host.
class PtyMaster : public SessionTerminal {
public:
    explicit PtyMaster(UniqueFd master);
    [[nodiscard]] FdRef fd() const noexcept override { return master_; }
    Outcome fill(Pump &output) override { return output.fill(master_); }
    void fill_pair(Pump &output) override;
    Outcome drain(Pump &input) override;
    [[nodiscard]] std::optional<termios> settings() const override;
    bool change_to(const termios &settings) override;
    void resize(const WindowSize &size) noexcept override;
    [[nodiscard]] bool has_other_foreground() const override;
    [[nodiscard]] bool tells_its_end() const noexcept override { return false; }

private:
    UniqueFd master_;
};

// On a node: a socket of packets, which a carrier takes there (wrapper/carrier.hpp).
class DistantTerminal : public SessionTerminal {
public:
    explicit DistantTerminal(UniqueFd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] FdRef fd() const noexcept override { return socket_; }
    Outcome fill(Pump &output) override;
    void fill_pair(Pump & /*output*/) override {} // the node does not cut them
    Outcome drain(Pump &input) override;
    [[nodiscard]] std::optional<termios> settings() const override { return known_ ? std::optional(known_->settings) : std::nullopt; }
    bool change_to(const termios &settings) override;
    void resize(const WindowSize &size) noexcept override;
    [[nodiscard]] bool has_other_foreground() const override { return known_ && known_->other_foreground; }
    [[nodiscard]] bool tells_its_end() const noexcept override { return true; }

private:
    UniqueFd socket_;
    std::optional<TerminalState> known_;
};

// Which of them this descriptor is.
std::unique_ptr<SessionTerminal> open_session_terminal(UniqueFd fd);

// Connects the user's terminal with the session's pty: bytes in both directions, size, modes, suspension.
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

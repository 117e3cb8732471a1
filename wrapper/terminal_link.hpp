// The user's terminal, what the agent writes to it, and the session's pty that is tied to it.
#pragma once

#include "common/base/request.hpp"

#include <poll.h>
#include <termios.h>

#include <csignal>
#include <memory>

namespace pi_agent {

// Removes from the agent's output what would reach the clipboard of the user's terminal. Reads the byte stream of one terminal, split
// anywhere. A control string for the clipboard (OSC 52; OSC 5522, kitty; OSC 1337 with Copy, iTerm2) is left out to its end. A CAN replaces
// it, so that the bytes before and after it do not join. A CAN also replaces what makes the terminal leave UTF-8. A passthrough of tmux or
// screen ends before its content, because two of them make one control string outside. All other bytes stay as they are.
class ClipboardFilter {
public:
    // Without utf8 the terminal reads every byte from 0x80 to 0x9f as a control (ECMA-48).
    explicit ClipboardFilter(bool utf8 = true) noexcept : utf8_(utf8) {}
    [[nodiscard]] std::string filter(std::string_view output);

private:
    enum class State {
        text,
        escape,
        utf8_control,
        coding,
        prefix,
        device,
        device_escape,
        device_utf8,
        dropping,
        dropping_escape,
        dropping_utf8
    };
    void take(char byte, std::string &out);
    [[nodiscard]] bool is_control() const;
    void take_in_coding(char byte, std::string &out);
    void take_in_device_string(char byte, std::string &out);
    void take_in_prefix(char byte, std::string &out);
    void let_go(std::string &out);
    void hold(char byte, State state);
    void pass(char byte, State state, std::string &out);
    void drop(std::string &out);

    bool utf8_;
    State state_ = State::text;
    std::string held_;   // the beginning of a possible control string; bounded
    std::string prefix_; // shows which control string it is
    char last_ = 0;
};

// Watches the agent's output for terminal modes that outlive a program, so that a dead agent leaves a usable terminal behind. Reads the
// byte stream of one terminal (ECMA-48 control sequences, split anywhere) and remembers which modes differ from a shell's.
class TerminalModes {
public:
    void watch(std::string_view output);
    // Undoes the modes that are on (alternate screen, mouse and paste reports, hidden cursor, keyboard protocols, colours) and ends a
    // control string that was cut off. Empty if there is nothing to undo.
    [[nodiscard]] std::string leave_sequence() const;
    // Restores them after leave_sequence, for example when a stopped agent continues.
    [[nodiscard]] std::string enter_sequence() const;

private:
    void take(char byte);
    void begin(char byte);
    void finish(char final_byte);
    void set_private_modes(bool on);

    enum class State { text, utf8_control, escape, sequence, control_string, utf8_in_string };
    State state_ = State::text;
    std::string parameters_;         // between ESC [ and the final byte, bounded
    std::array<bool, 21> changed_{}; // which private modes differ from a shell's
    int keyboard_depth_ = 0;         // pushed entries of the kitty keyboard protocol
    std::string keyboard_flags_;     // of the last push
    std::string other_keys_;         // xterm's modifyOtherKeys resource, when set
    bool coloured_ = false;          // colours or other attributes of characters are set
    bool keypad_ = false;            // sends application sequences
};

// --- The user's terminal and its job: standard descriptors, settings, raw mode, size, signals. Nothing here changes it before the agent
// asks for keys.

// What became of a read or a write that does not wait.
enum class Outcome { moved, blocked, ended };

// Of one that returned `count`. To read nothing is the end.
Outcome outcome_of_read(ssize_t count) noexcept;
Outcome outcome_of_write(ssize_t count) noexcept;

// Where it cannot be told to wait for nothing, poll(2) is asked before each write, and no more is written than what is always taken then.
// False when nothing was taken by the deadline.
constexpr std::size_t careful_write = 256; // for a terminal
bool write_carefully(FdRef sink, std::string_view bytes, std::size_t at_once, Deadline deadline) noexcept;

// One direction of the terminal's bytes, with back-pressure: it reads only after it has written everything.
class Pump {
public:
    [[nodiscard]] bool wants_input() const noexcept { return begin_ == end_; }
    // Reads once; fresh() has the bytes.
    Outcome fill(FdRef source);
    [[nodiscard]] std::string_view fresh() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
    // The first `count` bytes have gone elsewhere.
    void take(std::size_t count) noexcept { begin_ += count; }
    // Writes what it can; `at_once` bounds a single write, for a sink that may block.
    Outcome drain(FdRef sink, std::size_t at_once);
    // Reads once more and appends. False if nothing came, or if there is no room.
    bool fill_further(FdRef source);
    [[nodiscard]] bool ends_with(char byte) const noexcept { return begin_ != end_ && buffer_[end_ - 1] == byte; }
    // Takes out each `first` that is directly before a `second`.
    void drop_before(char first, char second) noexcept;
    // Replaces the content.
    void replace(std::string_view bytes);
    void discard() noexcept { begin_ = end_; }

private:
    static constexpr std::size_t capacity = 64UL * 1024;
    std::vector<char> buffer_ = std::vector<char>(capacity);
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

// By the caller (nohup, background jobs); such a signal stays ignored.
bool is_ignored(int number) noexcept;

// The wrapper's signals: which ones it watches, and how it stops itself as the shell expects from a job.
class JobSignals {
public:
    // Blocks and watches the signals that it passes on or handles.
    JobSignals();

    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    struct Signal {
        int number;         // 0: none
        bool from_keyboard; // from the kernel, for the whole job: a key, or a hang-up
    };
    // The next pending signal that matters.
    Signal next();
    // A signal for the agent is pending, to pass on before the job stops.
    [[nodiscard]] bool are_waiting() const;
    // Stops the whole job with `number` (TSTP, TTOU), as the terminal would, and returns when it is continued. False if nothing stopped:
    // the kernel does not stop an orphaned process group, which nobody would continue (setpgid(2)).
    bool stop_job(int number);

private:
    UniqueFd fd_;
    sigset_t watched_{};
};

[[nodiscard]] bool are_same(const termios &one, const termios &other) noexcept;

class UserTerminal {
public:
    // Empty if no standard descriptor is a terminal. Throws Failure(denied) if two of them are different terminals.
    static std::optional<UserTerminal> find();

    UserTerminal(UserTerminal &&) noexcept = default;
    UserTerminal &operator=(UserTerminal &&) noexcept = default;
    UserTerminal(const UserTerminal &) = delete;
    UserTerminal &operator=(const UserTerminal &) = delete;
    ~UserTerminal(); // restores

    [[nodiscard]] const std::array<bool, 3> &on_terminal() const noexcept { return on_terminal_; }
    [[nodiscard]] bool has_input() const noexcept { return on_terminal_[0]; }
    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    // False if writes may block, because the terminal could not be opened a second time (under su it belongs to somebody else).
    [[nodiscard]] bool is_own() const noexcept { return own_; }
    [[nodiscard]] WindowSize size() const;
    // A background process must not change a terminal's settings or read from it: the kernel would stop it.
    [[nodiscard]] bool in_foreground() const noexcept;

    // Only in the foreground. Each key arrives as it is pressed, without echo and without effect. Output does not change, for others who
    // write to the terminal.
    void make_raw();
    // Also passes output through unchanged. Not if the output goes to another program of a pipeline.
    void make_output_raw();
    // Restores the settings from before make_raw, unless another wrapper still needs raw mode, or this one is now in the background. Safe
    // in any state. If the output goes to another program of a pipeline that may use the terminal (a pager), its settings stay.
    void restore() noexcept;
    [[nodiscard]] bool is_raw() const noexcept { return raw_; }
    [[nodiscard]] bool is_output_raw() const noexcept { return raw_ && output_raw_; }
    // The settings that the user's programs see now.
    [[nodiscard]] termios settings() const;

private:
    explicit UserTerminal(const std::array<bool, 3> &on_terminal) : on_terminal_(on_terminal) {}
    void change_to(const termios &settings);
    [[nodiscard]] bool is_raw_for_another() const noexcept;
    void tell_others(bool wants_it_raw) const noexcept;

    std::array<bool, 3> on_terminal_;
    UniqueFd fd_;
    UniqueFd lock_; // the terminal's device, for locks; empty if it has no name, or belongs to somebody else
    bool own_ = false;
    bool raw_ = false;
    bool output_raw_ = false;
    termios settings_{}; // the shell's
    termios raw_settings_{};
};

// --- The session's pty, here or on a node of the cluster, and the user's terminal tied to it.

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
    Outcome drain(Pump &input) override { return input.drain(master_, SIZE_MAX); }
    [[nodiscard]] std::optional<termios> settings() const override;
    bool change_to(const termios &settings) override { return tcsetattr(master_.get(), TCSANOW, &settings) == 0; }
    void resize(const WindowSize &size) noexcept override;
    [[nodiscard]] bool has_other_foreground() const override;
    [[nodiscard]] bool tells_its_end() const noexcept override { return false; }

private:
    UniqueFd master_;
};

// On a node: a socket of packets, which a carrier takes there (wrapper/session_client.hpp).
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

    void resize() { master_->resize(terminal_.size()); }
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
    void write_now(std::string_view bytes) noexcept
    {
        if (!terminal_ended_) write_carefully(terminal_.fd(), bytes, careful_write, in_seconds(flush_patience_seconds));
    }
    void copy_settings();

    static constexpr int flush_patience_seconds = 1; // for a terminal that is paused (Ctrl-S) or read by nobody

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

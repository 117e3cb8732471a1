// The user's terminal and its job: standard descriptors, settings, raw mode, size, signals. Nothing here changes it before the agent asks
// for keys.
#pragma once

#include "common/base/request.hpp"

#include <csignal>
#include <poll.h>
#include <termios.h>

namespace pi_agent {

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

// The wrapper's signals: which ones it watches, and how it stops itself as the shell expects from a job.
class JobSignals {
public:
    // Blocks and watches the signals that it passes on or handles. Signals that the caller ignores stay ignored (nohup, background jobs).
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

} // namespace pi_agent

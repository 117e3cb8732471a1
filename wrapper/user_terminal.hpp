// The user's terminal: which of the standard descriptors it is, its settings, raw mode and back, its size. Nothing here changes it before
// the agent asks for keys.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/request.hpp"

#include <array>
#include <optional>
#include <termios.h>

namespace pi_agent {

[[nodiscard]] bool are_same(const termios &one, const termios &other) noexcept;

class UserTerminal {
public:
    // Nothing when no standard descriptor is a terminal. Throws Failure(denied) when two of them are different terminals.
    static std::optional<UserTerminal> find();

    UserTerminal(UserTerminal &&) noexcept = default;
    UserTerminal &operator=(UserTerminal &&) noexcept = default;
    UserTerminal(const UserTerminal &) = delete;
    UserTerminal &operator=(const UserTerminal &) = delete;
    ~UserTerminal(); // restores

    [[nodiscard]] const std::array<bool, 3> &on_terminal() const noexcept { return on_terminal_; }
    [[nodiscard]] bool has_input() const noexcept { return on_terminal_[0]; }
    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    // False when writes may block: the terminal could not be opened a second time (it belongs to somebody else, as under su).
    [[nodiscard]] bool is_own() const noexcept { return own_; }
    [[nodiscard]] WindowSize size() const;
    // Nobody may touch a terminal's settings or read from it in the background: the kernel would stop the reader.
    [[nodiscard]] bool in_foreground() const noexcept;

    // Only in the foreground. Each key comes as it is pressed, and is neither shown nor obeyed. Output stays as it is, for others who write
    // to the terminal.
    void make_raw();
    // For what is written to come through untouched as well. Not where the output goes to another program of a pipeline.
    void make_output_raw();
    // Back to what it was before make_raw, unless another wrapper still needs it raw, or this one is in the background now. Safe to call in
    // any state. Where the output goes to another program of a pipeline, which may use the terminal as well (a pager), what that has set
    // since stays.
    void restore() noexcept;
    [[nodiscard]] bool is_raw() const noexcept { return raw_; }
    [[nodiscard]] bool is_output_raw() const noexcept { return raw_ && output_raw_; }
    // What the user's programs find now.
    [[nodiscard]] termios settings() const;

private:
    explicit UserTerminal(const std::array<bool, 3> &on_terminal) : on_terminal_(on_terminal) {}
    void change_to(const termios &settings);
    [[nodiscard]] bool is_raw_for_another() const noexcept;
    void tell_others(bool wants_it_raw) const noexcept;

    std::array<bool, 3> on_terminal_;
    UniqueFd fd_;
    UniqueFd lock_; // the terminal's device, for locks; none where it has no name of its own, or is somebody else's
    bool own_ = false;
    bool raw_ = false;
    bool output_raw_ = false;
    termios settings_{}; // the shell's
    termios raw_settings_{};
};

} // namespace pi_agent

// The user's terminal: its standard descriptors, settings, raw mode and size. Nothing here changes it before the agent asks for keys.
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

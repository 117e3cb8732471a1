// The user's terminal: which of the standard descriptors it is, its settings, raw mode and back, its size.
#pragma once

#include "common/fd.hpp"
#include "common/request.hpp"

#include <array>
#include <optional>
#include <termios.h>

namespace pi_agent {

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

    // Hands bytes through untouched. Where other programs of a pipeline write to the terminal too, it keeps its output processing for them,
    // and the pty's is switched off instead.
    void make_raw();
    // Back to what it was before make_raw. Safe to call in any state. Where the output goes to another program of a pipeline, which may use
    // the terminal as well (a pager), what that has set since stays.
    void restore() noexcept;
    [[nodiscard]] bool is_raw() const noexcept { return raw_; }
    // The pty begins with the user's own settings (erase character, UTF-8, …). `master` works on its other end.
    void copy_settings_to(FdRef master) const;

private:
    explicit UserTerminal(const std::array<bool, 3> &on_terminal) : on_terminal_(on_terminal) {}

    std::array<bool, 3> on_terminal_;
    UniqueFd fd_;
    bool own_ = false;
    bool raw_ = false;
    termios settings_{}; // before make_raw
    termios raw_settings_{};
};

} // namespace pi_agent

// Reads a secret: without an echo at a terminal, and restores the terminal however that ends.
#include "admin/text/terminal.hpp"

#include "common/base/error.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <termios.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t longest_secret = 4096; // a line of a terminal has no more

volatile std::sig_atomic_t signal_that_came = 0; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a handler has no other place

extern "C" void note_signal(int number)
{
    signal_that_came = number;
}

// Signals that would end this process end the read instead; the terminal comes first.
class SignalsWait {
public:
    SignalsWait()
    {
        signal_that_came = 0;
        struct sigaction action {};
        action.sa_handler = note_signal; // without SA_RESTART, so that read(2) ends
        for (std::size_t index = 0; index < ending.size(); ++index)
            ::sigaction(ending[index], &action, &before_[index]);
    }
    ~SignalsWait()
    {
        for (std::size_t index = 0; index < ending.size(); ++index)
            ::sigaction(ending[index], &before_[index], nullptr);
        if (signal_that_came != 0) ::raise(signal_that_came);
    }
    SignalsWait(const SignalsWait &) = delete;
    SignalsWait &operator=(const SignalsWait &) = delete;

private:
    static constexpr std::array<int, 5> ending = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    std::array<struct sigaction, ending.size()> before_{};
};

class NoEcho {
public:
    NoEcho() : is_terminal_(::tcgetattr(STDIN_FILENO, &before_) == 0)
    {
        if (!is_terminal_) return;
        auto settings = before_;
        settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
        if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings) != 0) throw_errno("cannot switch the terminal's echo off");
    }
    ~NoEcho()
    {
        if (!is_terminal_) return;
        ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
        std::cerr << '\n' << std::flush; // the line feed that was not shown
    }
    NoEcho(const NoEcho &) = delete;
    NoEcho &operator=(const NoEcho &) = delete;

private:
    struct termios before_ {};
    bool is_terminal_;
};

} // namespace

std::optional<std::string> read_hidden(const std::string &question)
{
    const SignalsWait signals; // goes last: it may end this process
    const NoEcho no_echo;
    if (::isatty(STDIN_FILENO) == 1) std::cerr << question << ' ' << std::flush;
    std::string line;
    char byte = 0;
    while (line.size() < longest_secret) {
        const auto count = ::read(STDIN_FILENO, &byte, 1);
        if (count < 0 && errno == EINTR && signal_that_came == 0) continue;
        if (count < 0 && errno != EINTR) throw_errno("cannot read the answer");
        if (signal_that_came != 0) return std::nullopt;
        if (count == 0) return line.empty() ? std::nullopt : std::optional(line);
        if (byte == '\n') return line;
        line += byte;
    }
    throw Failure(ExitStatus::usage, "the answer is too long");
}

} // namespace pi_agent

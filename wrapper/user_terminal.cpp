// The user's terminal.
#include "wrapper/user_terminal.hpp"

#include "common/error.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// The other end of a pty answers like a terminal, but nobody sits there; it is passed on like any device, and refused by the runner.
bool is_terminal(int fd)
{
    unsigned number = 0;
    return isatty(fd) == 1 && ioctl(fd, TIOCGPTN, &number) != 0;
}

// Of the terminal itself, whatever name it was opened by: /dev/tty is a device of its own (tty(4)).
dev_t device_of(int terminal, const struct stat &facts)
{
    unsigned device = 0;
    return ioctl(terminal, TIOCGDEV, &device) == 0 ? device : facts.st_rdev;
}

bool are_same(const termios &one, const termios &other) noexcept
{
    return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag && one.c_cflag == other.c_cflag && one.c_lflag == other.c_lflag &&
           std::equal(std::begin(one.c_cc), std::end(one.c_cc), std::begin(other.c_cc));
}

// EIO: it has hung up, which the loop learns from poll(2).
void throw_unless_hung_up(const char *action)
{
    if (errno != EIO) throw_errno(action);
}

} // namespace

std::optional<UserTerminal> UserTerminal::find()
{
    std::array<bool, 3> on_terminal{};
    std::optional<int> first;
    dev_t device = 0;
    for (int fd = 0; fd < 3; ++fd) {
        struct stat facts {};
        if (!is_terminal(fd) || fstat(fd, &facts) != 0) continue;
        if (first && device_of(fd, facts) != device)
            throw Failure(ExitStatus::denied,
                          "denied: standard input, output and error are on different terminals; the agent gets one; redirect the others");
        if (!first) {
            first = fd;
            device = device_of(fd, facts);
        }
        on_terminal[static_cast<std::size_t>(fd)] = true;
    }
    if (!first) return std::nullopt;
    UserTerminal terminal(on_terminal);
    // An open file of our own: O_NONBLOCK on the shell's would stay there after us.
    terminal.fd_ = UniqueFd::adopt(open(("/proc/self/fd/" + std::to_string(*first)).c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    terminal.own_ = terminal.fd_.is_open();
    if (!terminal.own_) terminal.fd_ = UniqueFd::adopt(fcntl(*first, F_DUPFD_CLOEXEC, 3));
    if (!terminal.fd_ || tcgetattr(terminal.fd_.get(), &terminal.settings_) != 0) throw_errno("reading the terminal's settings");
    return terminal;
}

UserTerminal::~UserTerminal()
{
    if (fd_) restore();
}

WindowSize UserTerminal::size() const
{
    winsize size{};
    if (ioctl(fd_.get(), TIOCGWINSZ, &size) != 0) return WindowSize{};
    return WindowSize{size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel};
}

bool UserTerminal::in_foreground() const noexcept
{
    const pid_t group = tcgetpgrp(fd_.get());
    return group < 0 || group == getpgrp(); // not our controlling terminal: no job control to respect
}

void UserTerminal::make_raw()
{
    if (!has_input()) return; // without input from it, its signals are for the whole pipeline and stay the terminal's business
    // Done again even when it was: a shell may have changed them while this process was stopped.
    if (!raw_ && tcgetattr(fd_.get(), &settings_) != 0) return throw_unless_hung_up("reading the terminal's settings");
    termios raw = settings_;
    cfmakeraw(&raw);
    if (!on_terminal_[1]) raw.c_oflag = settings_.c_oflag;
    if (tcsetattr(fd_.get(), TCSANOW, &raw) != 0) return throw_unless_hung_up("putting the terminal into raw mode");
    raw_ = true;
    if (tcgetattr(fd_.get(), &raw_settings_) != 0) throw_unless_hung_up("reading the terminal's settings"); // it may take a part of them
}

void UserTerminal::restore() noexcept
{
    if (!raw_) return;
    raw_ = false;
    termios now{};
    if (!on_terminal_[1] && tcgetattr(fd_.get(), &now) == 0 && !are_same(now, raw_settings_)) return;
    // From the background this would stop us half-way through the end: TTOU is blocked for the moment of the call.
    sigset_t output_stop;
    sigset_t before;
    sigemptyset(&output_stop);
    sigaddset(&output_stop, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output_stop, &before);
    tcsetattr(fd_.get(), TCSANOW, &settings_); // best_effort: a terminal that is gone needs no restoring
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

void UserTerminal::copy_settings_to(FdRef master) const
{
    termios settings = settings_;
    const bool processes_output_itself = has_input() && on_terminal_[1];
    if (!processes_output_itself) settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    if (tcsetattr(master.get(), TCSANOW, &settings) != 0) throw_errno("setting up the session's terminal");
}

} // namespace pi_agent

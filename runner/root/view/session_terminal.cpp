// Opening the session's pty.
#include "runner/root/view/session_terminal.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr int terminal_patience_seconds = 5;

struct SessionTerminal {
    UniqueFd master;
    UniqueFd slave;
};

SessionTerminal open_session_terminal(FdRef devpts, const Account &agent, const WindowSize &window)
{
    SessionTerminal terminal;
    terminal.master = open_or_throw("opening the session's terminal", devpts, "ptmx", O_RDWR | O_NOCTTY);
    const int unlocked = 0;
    if (ioctl(terminal.master.get(), TIOCSPTLCK, &unlocked) != 0) throw_errno("unlocking the session's terminal");
    // By descriptor, not by name (ioctl_tty(2), TIOCGPTPEER).
    terminal.slave = UniqueFd::adopt(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal.slave) throw_errno("opening the agent's end of the session's terminal");
    if (fchown(terminal.slave.get(), agent.uid.value(), agent.gid.value()) != 0) throw_errno("giving the session's terminal to the agent");
    const winsize size{window.rows, window.columns, window.x_pixels, window.y_pixels};
    if (ioctl(terminal.master.get(), TIOCSWINSZ, &size) != 0) throw_errno("setting the session's window size");
    return terminal;
}

} // namespace

UniqueFd give_terminal(const AsRoot & /*root*/, FdRef devpts, const Account &agent, const Request &request, FdRef wrapper)
{
    if (!has_any(request.on_terminal)) return UniqueFd();
    SessionTerminal terminal = open_session_terminal(devpts, agent, request.window);
    send_packet(wrapper, encode(RunnerMessage(TerminalOpened{})), {terminal.master.get()}, in_seconds(terminal_patience_seconds));
    return std::move(terminal.slave);
}

} // namespace pi_agent

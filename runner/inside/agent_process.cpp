// Starting the agent and waiting for it, inside its unit; and connections to ports of the session.
#include "runner/inside/agent_process.hpp"

#include "common/base/files.hpp"
#include "common/base/port_connection.hpp"

#include <arpa/inet.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>

namespace pi_agent {

namespace {

constexpr int report_fd = 3;

// Tracks who is in the foreground of the session's terminal. The kernel stops a background process that reads from a terminal or changes
// its settings (TTIN, TTOU). So the agent stays in the background until it asks in that way, and the wrapper, which hears of the stop,
// takes no key before.
class Foreground {
public:
    explicit Foreground(pid_t agent) noexcept : agent_(agent), agents_(agent) {}

    // All signals are blocked here, TTOU too: so both work from the background. best_effort: an agent without a terminal has no foreground.
    void give() const
    {
        const UniqueFd terminal = open_terminal();
        if (!terminal || tcgetpgrp(terminal.get()) != getpgrp()) return;
        if (tcsetpgrp(terminal.get(), agents_) != 0) tcsetpgrp(terminal.get(), agent_); // the other group has ended
    }
    void take()
    {
        const UniqueFd terminal = open_terminal();
        const pid_t now = terminal ? tcgetpgrp(terminal.get()) : -1;
        if (now <= 0 || now == getpgrp()) return;
        agents_ = now;
        tcsetpgrp(terminal.get(), getpgrp());
    }
    // Passes on what the terminal tells its foreground while this process is in it: a resize, and a key that interrupts or stops. Such a
    // key may have been typed when the wrapper already had the keyboard and its message about that was on the way.
    void pass_on(int number) const
    {
        if (kill(-agents_, number) != 0) kill(-agent_, number); // best_effort: both have ended
    }

private:
    static UniqueFd open_terminal() { return UniqueFd::adopt(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)); }
    pid_t agent_;
    pid_t agents_; // the group to put into the foreground for the agent's side: a shell inside puts others there
};

enum class Change { none, stopped, ended };

// Does not wait: a stopped runner reads later, and by then enough of these messages are there for it.
void tell_at_once(FdRef control, const ExecMessage &message)
{
    try {
        send_packet(control, encode(message), {}, Clock::now());
    } catch (const DeadlineExceeded &) { // NOLINT(bugprone-empty-catch): said above
    }
}

Change reap(pid_t agent, ExecEnded &ended, int &stop_signal)
{
    Change change = Change::none;
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED); pid > 0; pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) {
        if (pid != agent) continue;
        if (WIFSTOPPED(status)) {
            change = Change::stopped;
            stop_signal = WSTOPSIG(status);
            continue;
        }
        ended = WIFSIGNALED(status) ? ExecEnded{true, WTERMSIG(status)} : ExecEnded{false, WEXITSTATUS(status)};
        return Change::ended;
    }
    return change;
}

// A key means the whole job, so its signal goes to the process group that the agent leads.
void obey(const WrapperMessage &message, pid_t agent, Foreground &foreground, FdRef control)
{
    if (const auto *signal = std::get_if<ForwardSignal>(&message)) {
        kill(signal->number == SIGTSTP || signal->from_keyboard ? -agent : agent, signal->number);
        // Otherwise a stopped agent would not get the signal before it is killed. systemd.kill(5) does the same.
        if (signal->number == SIGTERM || signal->number == SIGHUP) kill(-agent, SIGCONT);
        if (asks_for_end(signal->number)) tell_at_once(control, SignalHeard{});
    } else if (const auto *on = std::get_if<ContinueAgent>(&message)) {
        if (on->with_keyboard)
            foreground.give();
        else
            foreground.take();
        kill(-agent, SIGCONT);
    }
}

// The soft limit that the caller's own programs have: systemd's is 1024, whatever the user has set. A session gets no more than its own
// hard one. Where the policy has a limit, it is both.
rlimit open_files_of(const LaunchRecord &record)
{
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw_errno("asking how many files a session may have open");
    if (record.most_open_files > limit.rlim_max)
        throw Failure(FailureKind::limits_not_enforced, "limits.files: this host lets no process of a session have more than " +
                                                            std::to_string(limit.rlim_max) + " files open, and the policy says " +
                                                            std::to_string(record.most_open_files) +
                                                            "; ask the administrator to lower it, or to raise the limit of what starts "
                                                            "sessions (ulimit -Hn)");
    if (record.most_open_files > 0) return {record.most_open_files, record.most_open_files};
    limit.rlim_cur = std::min<rlim_t>(record.open_files, limit.rlim_max);
    return limit;
}

// Exceptions may hold any bytes of a name: the runner escapes what it receives (runner/root/confined/supervise.cpp).
void enter_directory(const LaunchRecord &record)
{
    UniqueFd current = open_or_throw("opening the project " + record.project, record.project, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    // Step by step: a unit's RestrictSUIDSGID=, under method none, answers ENOSYS to openat2(2), which could do it in one call.
    for (const auto part : split(record.below, '/')) {
        const std::string name(part);
        if (name == "..") throw ProtocolError("the working directory has .. in it");
        current = open_or_throw("opening the working directory " + record.below + " in " + record.project, current, name,
                                O_PATH | O_DIRECTORY | O_NOFOLLOW);
    }
    const struct stat facts = examine(current, "examining the working directory");
    if (facts.st_ino != record.cwd_inode && defence_is_on("cwd-inode"))
        throw Failure(FailureKind::directory,
                      "denied: the working directory was replaced while the session was being prepared; cd to it again");
    if (fchdir(current.get()) != 0) throw_errno("entering the working directory " + record.below + " in " + record.project);
}

// The descriptors that came, and copies of the terminal in the places between.
std::array<UniqueFd, 3> complete(std::vector<UniqueFd> came, const OnTerminal &on_terminal, FdRef terminal)
{
    std::array<UniqueFd, 3> stdio;
    auto next = came.begin();
    for (std::size_t index = 0; index < 3; ++index) {
        if (!on_terminal[index] && next == came.end()) throw ProtocolError("a standard descriptor is missing");
        stdio[index] = on_terminal[index] ? duplicate(terminal) : std::move(*next++);
        if (!stdio[index]) throw_errno("copying the session's terminal");
    }
    if (next != came.end()) throw ProtocolError("there is a standard descriptor too many");
    return stdio;
}

// --- Leads connections of the user's own programs to ports of the session's loopback.

template <typename Address>
UniqueFd connect_to(const Address &address, int family)
{
    UniqueFd connection = UniqueFd::adopt(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    if (connection && connect(connection.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) connection.reset();
    return connection;
}

// A development server that listens on "localhost" has one of the two.
UniqueFd connect_here(std::uint16_t port)
{
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (UniqueFd connection = connect_to(four, AF_INET)) return connection;
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port;
    six.sin6_addr = in6addr_loopback;
    return connect_to(six, AF_INET6);
}

// A socket could lead the session to another network, and a file of the user's could be changed. No file system is asked.
bool is_pipe(FdRef fd)
{
    struct statx facts {};
    return statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) == 0 && S_ISFIFO(facts.stx_mode);
}

// The next connection: its port, and the two pipes. False when the wrapper is gone, or sends something else than pipes.
bool serve_next(FdRef connections, const std::vector<std::uint64_t> &ports)
{
    std::optional<Packet> packet = receive_packet(connections, in_seconds(1));
    if (!packet) return false;
    if (!std::all_of(packet->fds.begin(), packet->fds.end(), is_pipe)) return false;
    const std::uint64_t port = Decoder(packet->bytes).number();
    const bool is_named = std::find(ports.begin(), ports.end(), port) != ports.end() || !defence_is_on("named-ports");
    if (packet->fds.size() != 2 || !is_named) return true;
    const auto pipes = std::make_shared<std::vector<UniqueFd>>(std::move(packet->fds));
    run_beside([port, pipes] { // a server that accepts nothing keeps only this one waiting
        if (UniqueFd connection = connect_here(static_cast<std::uint16_t>(port)))
            carry_connection({std::move(connection), std::move(pipes->front()), std::move(pipes->back())});
    });
    return true;
}

} // namespace

ReceivedLaunch receive_launch(FdRef channel, Deadline deadline)
{
    std::optional<Packet> stdio = receive_packet(channel, deadline);
    if (!stdio || stdio->bytes != Encoder().number(stdio_type).bytes()) throw ProtocolError("no standard descriptors came");
    std::optional<Packet> packet = receive_record(channel, deadline);
    if (!packet) throw ProtocolError("no launch record came");
    Decoder decoder(packet->bytes);
    if (decoder.number() != launch_type) throw ProtocolError("no launch record came");
    ReceivedLaunch launch;
    decoder(launch.record);
    launch.record.umask &= 0777U;
    decoder.end();
    const bool has_terminal = has_any(launch.record.on_terminal);
    const bool has_mode_changer = launch.record.has_mode_changer;
    if (packet->fds.size() != (has_terminal ? 1U : 0U) + (has_mode_changer ? 1U : 0U)) throw ProtocolError("no launch record came");
    if (has_terminal) launch.terminal = std::move(packet->fds.front());
    if (has_mode_changer) launch.mode_changer = std::move(packet->fds.back());
    if (!launch.record.ports.empty() && !stdio->fds.empty()) {
        launch.connections = std::move(stdio->fds.back());
        stdio->fds.pop_back();
    }
    launch.stdio = complete(std::move(stdio->fds), launch.record.on_terminal, launch.terminal);
    return launch;
}

void enter_working_directory(const LaunchRecord &record)
{
    try {
        enter_directory(record);
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != EACCES) throw;
        throw Failure(FailureKind::directory, std::string(failure.what()) +
                                                  "; the agent's account may not enter it: where the policy says projects.ownership: none, "
                                                  "that account needs access of its own (docs/concepts/ownership.md)");
    }
}

void require_mount_points(const LaunchRecord &record)
{
    for (const auto &path : record.mount_points) {
        struct statx facts {};
        if (statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &facts) != 0)
            throw_errno("looking for the mount at " + path);
        if ((facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
            throw Failure(ExitStatus::unavailable, "what was mounted at " + path + " did not reach the session");
    }
}

void take_terminal(const ReceivedLaunch &launch)
{
    // systemd makes its child lead a session without a terminal. With PrivatePIDs= it forks once more: then this process leads none yet.
    if (getsid(0) != getpid() && setsid() < 0) throw_errno("leading a session");
    if (!launch.terminal) return;
    // The agent's job control needs a parent in the terminal's session.
    if (ioctl(launch.terminal.get(), TIOCSCTTY, 0) != 0) throw_errno("taking the session's terminal");
}

pid_t start_agent(const ReceivedLaunch &launch, const std::vector<sock_filter> &calls)
{
    const std::vector<char *> arguments = exec_pointers(launch.record.arguments);
    const std::vector<char *> environment = exec_pointers(launch.record.environment);
    const rlimit open_files = open_files_of(launch.record);
    auto [from_child, to_parent] = make_pipe();
    const pid_t agent = fork();
    if (agent < 0) throw_errno("starting the agent");
    if (agent == 0) {
        // The agent gets its three standard descriptors and the report to its parent, and no other descriptor. The others are closed here
        // and not by execve(2): a user's file may never answer, and while execve waits for it, whoever looks the process up in /proc waits
        // as well. systemd 257 does that when it stops the unit, and hung (seen on Linux 6.18).
        const bool is_confined = launch.record.restrictions == Restrictions::none || stand_below_launcher();
        const bool is_ready = is_confined && setpgid(0, 0) == 0 && restore_signals() &&
                              place_descriptors({launch.stdio[0].get(), launch.stdio[1].get(), launch.stdio[2].get(), to_parent.get()}) &&
                              fcntl(report_fd, F_SETFD, FD_CLOEXEC) == 0 && close_range(report_fd + 1, ~0U, 0) == 0 &&
                              setrlimit(RLIMIT_NOFILE, &open_files) == 0;
        if (is_ready) umask(launch.record.umask); // files in a shared project get the modes that the user's own files get
        // Last: the policy may refuse calls that are made above.
        const bool is_filtered = is_ready && install_session_call_filter(calls);
        if (is_filtered) execve(launch.record.binary.c_str(), arguments.data(), environment.data());
        const int problem = is_filtered || !is_ready ? errno : -errno;
        if (write(is_ready ? report_fd : to_parent.get(), &problem, sizeof problem) != sizeof problem) _exit(126);
        _exit(127);
    }
    to_parent.reset();
    int problem = 0;
    ssize_t length = 0;
    do {
        length = read(from_child.get(), &problem, sizeof problem);
    } while (length < 0 && errno == EINTR);
    if (length == 0) return agent; // closed by a successful exec
    int status = 0;
    waitpid(agent, &status, 0);
    if (problem < 0) throw SystemFailure(-problem, "refusing the system calls that the policy's hardening names");
    const char *remedy = problem == E2BIG
                             ? "; its arguments and variables are more than Linux takes (execve(2)): pass less, for example in a file"
                             : "; the policy's agent.binary must be an executable that the agent's group may run";
    throw Failure(FailureKind::agent_program,
                  "the agent " + launch.record.binary + " cannot be run: " + SystemFailure(problem, "execve").what() + remedy);
}

ExecEnded wait_for_agent(pid_t agent, FdRef control)
{
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGCHLD, SIGWINCH, SIGINT, SIGQUIT, SIGTSTP})
        sigaddset(&watched, number);
    const UniqueFd signals = UniqueFd::adopt(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals) throw_errno("watching the agent");
    ExecEnded ended{false, 0};
    Foreground foreground(agent);
    bool connected = true;
    for (;;) {
        int stop_signal = 0;
        const Change change = reap(agent, ended, stop_signal);
        if (change == Change::ended) return ended;
        if (change == Change::stopped && connected) tell_at_once(control, ExecStopped{stop_signal});
        std::array<pollfd, 2> waits{pollfd{signals.get(), POLLIN, 0}, pollfd{connected ? control.get() : -1, POLLIN, 0}};
        if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) throw_errno("waiting for the agent");
        signalfd_siginfo information{};
        while (read(signals.get(), &information, sizeof information) > 0)
            if (information.ssi_signo != SIGCHLD) foreground.pass_on(static_cast<int>(information.ssi_signo));
        if (waits[1].revents == 0) continue;
        const std::optional<Packet> packet = receive_packet(control, in_seconds(1));
        connected = packet.has_value();
        if (packet)
            obey(decode_wrapper_message(packet->bytes), agent, foreground, control);
        else if (defence_is_on("runner-eof"))
            throw Failure(ExitStatus::system_failure, "the runner ended"); // our end is the unit's: systemd kills what is left
    }
}

void end_like(const ExecEnded &ended)
{
    if (!ended.by_signal) _exit(ended.value);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(ended.value, SIG_DFL);
    unblock_signals();
    kill(getpid(), ended.value);
    _exit(128 + ended.value); // a signal that does not end a process, or the first process of a PID namespace
}

void serve_ports(UniqueFd connections, std::vector<std::uint64_t> ports)
{
    run_beside([channel = std::make_shared<UniqueFd>(std::move(connections)), ports = std::move(ports)] {
        try {
            pollfd wait{channel->get(), POLLIN, 0};
            do
                poll(&wait, 1, -1);
            while (serve_next(*channel, ports));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the ports close, and the agent goes on
        }
        channel->reset();
    });
}

} // namespace pi_agent

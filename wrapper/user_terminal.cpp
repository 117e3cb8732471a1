// The user's terminal: bytes one way, the wrapper's signals, settings, and what pi itself says there.
#include "wrapper/session_client.hpp"

#include "common/seams/seams.hpp"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/sysmacros.h>

namespace pi_agent {

namespace {

// These would end the wrapper with the terminal in raw mode, and are not for the agent (USR1 opens node's debugger, request.cpp).
bool is_survived(int number)
{
    return number == SIGUSR1 || number == SIGPIPE;
}

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

// A terminal that another wrapper made raw before this one looked, as a shell would have it: what is lost is what its user had switched
// off.
void make_sane(termios &settings) noexcept
{
    constexpr tcflag_t input = ICRNL | IXON;
    constexpr tcflag_t local = ISIG | ICANON | ECHO | ECHOE | ECHOK | IEXTEN;
    if ((settings.c_lflag & static_cast<tcflag_t>(ICANON)) != 0) return;
    settings.c_iflag |= input;
    settings.c_lflag |= local;
    settings.c_oflag |= OPOST;
}

// The terminal itself, and not /dev/tty, which is one file for all terminals and anybody's to lock.
UniqueFd open_for_lock(dev_t device)
{
    for (const std::string &name : {std::string("/proc/self/fd/0"), std::string("/proc/self/fd/1"), std::string("/proc/self/fd/2"),
                                    "/dev/pts/" + std::to_string(minor(device))}) {
        struct stat facts {};
        if (stat(name.c_str(), &facts) != 0 || !S_ISCHR(facts.st_mode) || facts.st_rdev != device) continue;
        UniqueFd fd = UniqueFd::adopt(open(name.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
        if (fd) return fd;
    }
    return UniqueFd();
}

struct flock lock_of(short type, off_t start, off_t length) noexcept
{
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = start;
    lock.l_len = length; // 0: to the end of all bytes
    return lock;
}

// EIO: it has hung up, which the loop learns from poll(2).
void throw_unless_hung_up(const char *action)
{
    if (errno != EIO) throw_errno(action);
}

constexpr int reader_patience_seconds = 1;

bool is_taken = true; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): the last text, whoever says the next

// ECMA-48 (EL); DECSC, DECRC and DECAWM as the VT100 has them. A text that is wider than the terminal stays in its line, which is all that
// can be erased.
constexpr const char *erase_line = "\r\x1b[K";
constexpr const char *keep_place = "\0337";
constexpr const char *erase_from_there = "\0338\x1b[K";
constexpr const char *wrap_off = "\x1b[?7l";
constexpr const char *wrap_on = "\x1b[?7h";

bool can_erase() noexcept
{
    const char *terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb" && *terminal != '\0';
}

// The runner gives the session's first process a second (runner/root/confined/supervise.cpp); a start that is under way ends faster.
constexpr auto end_patience = std::chrono::milliseconds(1600);
// A second signal within this time comes with the first, as of a terminal that hangs up and of the shell in it.
constexpr auto same_signal = std::chrono::milliseconds(200);

} // namespace

// Moving bytes one way.

Outcome outcome_of_read(ssize_t count) noexcept
{
    return count == 0 ? Outcome::ended : outcome_of_write(count);
}

Outcome outcome_of_write(ssize_t count) noexcept
{
    if (count >= 0) return Outcome::moved;
    return errno == EAGAIN || errno == EINTR ? Outcome::blocked : Outcome::ended;
}

bool write_carefully(FdRef sink, std::string_view bytes, std::size_t at_once, Deadline deadline) noexcept
{
    while (!bytes.empty()) {
        pollfd wait{sink.get(), POLLOUT, 0};
        const int ready = poll(&wait, 1, milliseconds_left(deadline));
        if (ready == 0) return false;
        const ssize_t count = ready < 0 ? ready : write(sink.get(), bytes.data(), std::min(bytes.size(), at_once));
        if (outcome_of_write(count) == Outcome::ended) return true;
        if (count <= 0 && milliseconds_left(deadline) == 0) return false; // writable, and yet without room: ONLCR needs two bytes
        bytes.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return true;
}

Outcome Pump::fill(FdRef source)
{
    const ssize_t count = read(source.get(), buffer_.data(), buffer_.size());
    const Outcome outcome = outcome_of_read(count); // of EIO, too: the last slave is closed, or the terminal is gone
    if (outcome != Outcome::moved) return outcome;
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    return outcome;
}

bool Pump::fill_further(FdRef source)
{
    if (end_ == buffer_.size()) return false;
    const ssize_t count = read(source.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (count > 0) end_ += static_cast<std::size_t>(count);
    return count > 0;
}

void Pump::drop_before(char first, char second) noexcept
{
    const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    auto to = from;
    while (from != end) {
        auto found = std::find(from, end, second);
        const bool is_pair = found != end && found != from && *(found - 1) == first;
        to = std::copy(from, is_pair ? found - 1 : found, to);
        from = found;
        if (from != end) *to++ = *from++;
    }
    end_ = static_cast<std::size_t>(to - buffer_.begin());
}

void Pump::replace(std::string_view bytes)
{
    if (buffer_.size() < bytes.size()) buffer_.resize(bytes.size());
    begin_ = 0;
    end_ = bytes.size();
    std::copy(bytes.begin(), bytes.end(), buffer_.begin());
}

Outcome Pump::drain(FdRef sink, std::size_t at_once)
{
    const ssize_t count = begin_ == end_ ? 0 : write(sink.get(), buffer_.data() + begin_, std::min(end_ - begin_, at_once));
    if (count > 0) begin_ += static_cast<std::size_t>(count);
    return outcome_of_write(count);
}

// The wrapper's signals.

bool is_ignored(int number) noexcept
{
    struct sigaction present {};
    return sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

JobSignals::JobSignals()
{
    sigemptyset(&watched_);
    for (const int number : {SIGCHLD, SIGWINCH, SIGCONT}) {
        signal(number, SIG_DFL); // an inherited "ignore" for CHLD would reap sudo before we see how it ended
        sigaddset(&watched_, number);
    }
    // A blocked signal is queued even where it is ignored, so those are left alone.
    for (int number = 1; number < NSIG; ++number)
        if ((is_forwarded_signal(number) || is_survived(number)) && !is_ignored(number)) sigaddset(&watched_, number);
    if (sigprocmask(SIG_BLOCK, &watched_, nullptr) != 0) throw_errno("blocking signals");
    fd_ = UniqueFd::adopt(signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throw_errno("watching signals");
}

JobSignals::Signal JobSignals::next()
{
    for (;;) {
        signalfd_siginfo information{};
        if (read(fd_.get(), &information, sizeof information) != static_cast<ssize_t>(sizeof information)) return {0, false};
        const int number = static_cast<int>(information.ssi_signo);
        if (!is_survived(number) || is_forwarded_signal(number)) return {number, information.ssi_code == SI_KERNEL};
    }
}

bool JobSignals::are_waiting() const
{
    sigset_t pending;
    sigpending(&pending);
    for (int number = 1; number < NSIG; ++number)
        if (is_forwarded_signal(number) && sigismember(&watched_, number) == 1 && sigismember(&pending, number) == 1) return true;
    return false;
}

bool JobSignals::stop_job(int number)
{
    sigset_t continued;
    sigemptyset(&continued);
    sigaddset(&continued, SIGCONT);
    const timespec at_once{};
    while (sigtimedwait(&continued, nullptr, &at_once) == SIGCONT) { // an earlier one must not look like ours
    }
    struct sigaction before {};
    struct sigaction stop {};
    stop.sa_handler = SIG_DFL;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    if (sigaction(number, &stop, &before) != 0) throw_errno("preparing to stop");
    kill(0, number); // the pipeline's other members too
    sigset_t mask;
    sigprocmask(SIG_UNBLOCK, &only, &mask); // stopped here
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    sigaction(number, &before, nullptr);
    return sigtimedwait(&continued, nullptr, &at_once) == SIGCONT;
}

// The user's terminal.

bool are_same(const termios &one, const termios &other) noexcept
{
    return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag && one.c_cflag == other.c_cflag && one.c_lflag == other.c_lflag &&
           std::equal(std::begin(one.c_cc), std::end(one.c_cc), std::begin(other.c_cc));
}

std::optional<UserTerminal> UserTerminal::find()
{
    std::array<bool, 3> on_terminal{};
    std::optional<int> first;
    dev_t device = 0;
    for (int fd = 0; fd < 3; ++fd) {
        struct stat facts {};
        if (!is_terminal(fd) || fstat(fd, &facts) != 0) continue;
        if (first && device_of(fd, facts) != device)
            throw Failure(
                FailureKind::streams,
                "denied: standard input, output and error are on different terminals, and the agent gets only one; redirect the others");
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
    if (!terminal.own_) terminal.fd_ = duplicate(FdRef(*first));
    if (terminal.own_) terminal.lock_ = open_for_lock(device);
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

// Of the wrappers that want the terminal raw each holds a lock on one byte of its device, so that two of one job, which share the
// foreground, find each other. One that is stopped in another job does not count.
bool UserTerminal::is_raw_for_another() const noexcept
{
    for (off_t start = 0;;) {
        struct flock other = lock_of(F_WRLCK, start, 0);
        if (!lock_ || fcntl(lock_.get(), F_GETLK, &other) != 0 || other.l_type == F_UNLCK) return false;
        if (getpgid(other.l_pid) == getpgrp()) return true;
        if (other.l_len == 0) return false; // no wrapper's, and there is nothing behind it
        start = other.l_start + other.l_len;
    }
}

void UserTerminal::tell_others(bool wants_it_raw) const noexcept
{
    if (struct flock own = lock_of(wants_it_raw ? F_RDLCK : F_UNLCK, getpid(), 1); lock_)
        fcntl(lock_.get(), F_SETLK, &own); // best_effort: without it, two of one job are like two programs that do not know each other
}

void UserTerminal::change_to(const termios &settings)
{
    if (tcsetattr(fd_.get(), TCSANOW, &settings) != 0) return throw_unless_hung_up("putting the terminal into raw mode");
    if (tcgetattr(fd_.get(), &raw_settings_) != 0) throw_unless_hung_up("reading the terminal's settings"); // it may take a part of them
}

void UserTerminal::make_raw()
{
    // Done again even when it was: a shell may have changed them while this process was stopped.
    if (!raw_) {
        tell_others(true); // before the look: of two at once at least one sees the other
        if (is_raw_for_another())
            make_sane(settings_); // they may be that one's
        else if (tcgetattr(fd_.get(), &settings_) != 0)
            return throw_unless_hung_up("reading the terminal's settings");
    }
    termios raw = settings_;
    cfmakeraw(&raw);
    if (!output_raw_) raw.c_oflag = settings_.c_oflag;
    change_to(raw);
    raw_ = true;
}

void UserTerminal::make_output_raw()
{
    if (!raw_ || output_raw_ || !on_terminal_[1]) return;
    output_raw_ = true;
    make_raw();
}

void UserTerminal::restore() noexcept
{
    if (!raw_) return;
    raw_ = false;
    tell_others(false);
    if (is_raw_for_another() || !in_foreground()) return; // who is in the foreground has it as they want it
    termios now{};
    if (!on_terminal_[1] && tcgetattr(fd_.get(), &now) == 0 && !are_same(now, raw_settings_)) return;
    tcsetattr(fd_.get(), TCSANOW, &settings_); // best_effort: a terminal that is gone needs no restoring
}

termios UserTerminal::settings() const
{
    termios now = settings_;
    if (is_raw_for_another()) {
        make_sane(now);
        return now;
    }
    if (tcgetattr(fd_.get(), &now) != 0) throw_unless_hung_up("reading the terminal's settings");
    return now;
}

// Writing to standard error without waiting for its reader. Its flags are others' too, so poll(2) is asked before each write.

void say(std::string_view text) noexcept
{
    const std::size_t at_once = isatty(STDERR_FILENO) == 1 ? careful_write : PIPE_BUF;
    is_taken = write_carefully(FdRef(STDERR_FILENO), text, at_once, in_seconds(is_taken ? reader_patience_seconds : 0));
}

// Drawing and erasing the progress line.

void ProgressLine::show(const std::string &text)
{
    if (!can_erase()) return;
    const bool is_behind = place_ == Place::behind_output;
    if (is_behind) clear();
    say((is_behind ? keep_place : erase_line) + (wrap_off + ("pi: " + text)) + wrap_on);
    is_shown_ = true;
}

void ProgressLine::clear()
{
    if (is_shown_) say(place_ == Place::behind_output ? erase_from_there : erase_line);
    is_shown_ = false;
}

// Waiting for the answer to a signal, and ending by it.

void AskedEnd::ask(int number)
{
    const Deadline now = Clock::now();
    if (due_) {
        is_over_ = is_over_ || now - asked_at_ >= same_signal;
        return;
    }
    number_ = number;
    asked_at_ = now;
    if (defence_is_on("signals-end-pi")) due_ = now + end_patience;
}

AgentEnded AskedEnd::tell(const SessionPeer &peer, bool has_runner, SessionId &session) const
{
    std::string text = std::string("pi: ended by SIG") + sigabbrev_np(number_) + ", though ";
    if (!has_runner)
        text += peer.name() +
                " has not answered: it belongs to root, and goes on until what it waits for answers; ask the administrator to run: "
                "sudo pi-agentctl doctor";
    else
        text += std::string("the runner has not answered; it ends the session") +
                (!session.empty() ? ", and pi does not look at what that left" : "") + ". What still runs: pi-agentctl sessions";
    tell_lines(text + "\n");
    session.clear();
    return AgentEnded{true, number_};
}

void end_as(const AgentEnded &ended)
{
    if (!ended.by_signal) _exit(ended.value);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(ended.value, SIG_DFL);
    // This one alone: another that is pending must not come first.
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, ended.value);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    kill(getpid(), ended.value);
    _exit(128 + ended.value);
}

} // namespace pi_agent

// Takes back everything that a caller can choose for a program run by sudo.
#include "runner/root/door/admission.hpp"

#include "runner/root/kernel/host_facts.hpp"

#include <linux/securebits.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <csignal>
#include <cstdlib>

namespace pi_agent {

namespace {

constexpr rlim_t descriptor_limit = 4096;
// <linux/ioprio.h> is C only in newer headers.
constexpr int io_priority_of_process = 1; // IOPRIO_WHO_PROCESS
constexpr int no_io_priority = 0;         // IOPRIO_CLASS_NONE, level 0

// The name in setrlimit(2); ulimit and systemd derive theirs from it.
std::string name_of_limit(int resource)
{
    constexpr std::array names = {"CPU",     "FSIZE", "DATA",  "STACK",      "CORE",     "RSS",  "NPROC",  "NOFILE",
                                  "MEMLOCK", "AS",    "LOCKS", "SIGPENDING", "MSGQUEUE", "NICE", "RTPRIO", "RTTIME"};
    static_assert(names.size() == RLIM_NLIMITS);
    return std::string("the resource limit RLIMIT_") + names.at(static_cast<std::size_t>(resource));
}

void reset_limits()
{
    if (!defence_is_on("reset-limits")) return;
    for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
        const auto kind = static_cast<__rlimit_resource>(resource);
        rlimit limit{};
        // PID 1 has the host's own limits; the caller could only have lowered them.
        if (prlimit(1, kind, nullptr, &limit) != 0) throw_errno("reading " + name_of_limit(resource) + " of PID 1");
        if (kind == RLIMIT_CORE) limit = rlimit{0, 0};
        if (kind == RLIMIT_NOFILE && limit.rlim_cur > descriptor_limit) limit.rlim_cur = descriptor_limit;
        if (setrlimit(kind, &limit) != 0)
            throw_errno("resetting " + name_of_limit(resource) + " (lowered in the calling shell; raise it there)");
    }
}

void reset_oom_score()
{
    const UniqueFd own = UniqueFd::adopt(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    if (own && write(own.get(), "0", 1) == 1) return;
    if (!own || errno != EACCES) throw_errno("resetting oom_score_adj");
    // Root of a container without CAP_SYS_RESOURCE, where the engine gave the whole container another score: PID 1 shows it.
    std::array<char, 16> score{};
    const UniqueFd first = UniqueFd::adopt(open("/proc/1/oom_score_adj", O_RDONLY | O_CLOEXEC));
    const ssize_t length = first ? read(first.get(), score.data(), score.size()) : -1;
    if (length <= 0) throw_errno("reading oom_score_adj of PID 1");
    if (pwrite(own.get(), score.data(), static_cast<std::size_t>(length), 0) != length)
        throw Failure(ExitStatus::system_failure,
                      std::string(SystemFailure(errno, "resetting oom_score_adj").what()) +
                          ": the calling shell raised it, and root of this container cannot lower it to the value of PID 1; start pi from "
                          "another shell, or give the container CAP_SYS_RESOURCE");
}

void reset_scheduling()
{
    if (!defence_is_on("reset-scheduling")) return;
    // EACCES: root of a container without CAP_SYS_NICE. A nice value that the caller raised then stays: it slows only that caller's start.
    if (setpriority(PRIO_PROCESS, 0, 0) != 0 && errno != EACCES) throw_errno("resetting the nice value");
    const sched_param parameters{};
    // SCHED_IDLE may get no time at all, and others wait for the locks of a start.
    if (sched_setscheduler(0, SCHED_OTHER, &parameters) != 0)
        throw Failure(ExitStatus::system_failure, std::string(SystemFailure(errno, "resetting the scheduling policy").what()) +
                                                      ": pi was started with another one (chrt, SCHED_IDLE), and root of this container "
                                                      "cannot reset it; start pi without it, or give the container CAP_SYS_NICE");
    if (syscall(SYS_ioprio_set, io_priority_of_process, 0, no_io_priority) != 0) throw_errno("resetting the I/O priority");
    const std::vector<cpu_set_t> processors = processors_of(1);
    if (sched_setaffinity(0, processors.size() * sizeof(cpu_set_t), processors.data()) != 0) throw_errno("resetting the processors");
    reset_oom_score();
}

// Resets memory from one node alone, another architecture's answers, and the keys of the caller's login.
void reset_memory_and_keys()
{
    if (!defence_is_on("reset-memory-and-keys")) return;
    // EPERM: the kernel never answers so. A container's filter does (docker's, without CAP_SYS_NICE), and it holds its callers, too.
    if (syscall(SYS_set_mempolicy, 0, nullptr, 0) != 0 && errno != ENOSYS && errno != EPERM) throw_errno("resetting the memory policy");
    if (personality(PER_LINUX) < 0) throw_errno("resetting the personality");
    if (const int error = leave_session_keyring(); error != 0) throw SystemFailure(error, "leaving the caller's keyring");
}

void reset_signals()
{
    if (!defence_is_on("reset-signals")) return;
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action {};
        action.sa_handler = SIG_DFL;
        if (number == SIGPIPE) action.sa_handler = SIG_IGN; // a peer that closes is an errno here, not a death
        // EINVAL: the two that cannot be caught, and the two that the C library keeps.
        if (sigaction(number, &action, nullptr) != 0 && errno != EINVAL) throw_errno("resetting signals");
    }
    if (!unblock_signals()) throw_errno("unblocking signals");
    const itimerval off{};
    for (const auto timer : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF})
        if (setitimer(timer, &off, nullptr) != 0) throw_errno("stopping timers");
}

[[noreturn]] void refuse_session(const std::string &action)
{
    throw Failure(FailureKind::sudo_refused,
                  std::string("denied: ") + SystemFailure(errno, action).what() +
                      "; the way in which sudo was started leaves its command in the caller's control; run pi in a shell");
}

void leave_session()
{
    if (!defence_is_on("leave-session")) return;
    if (getsid(0) == getpid()) {
        const UniqueFd terminal = UniqueFd::adopt(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
        if (!terminal && errno == ENXIO) return; // leads a session that has no terminal (tty(4)): nobody can signal it from a keyboard
        if (!terminal) refuse_session("opening the terminal"); // a terminal that exists and lets nobody in (TIOCSPTLCK) stays a keyboard
        if (signal(SIGHUP, SIG_IGN) == SIG_ERR || ioctl(terminal.get(), TIOCNOTTY) != 0) refuse_session("giving up the terminal");
        signal(SIGHUP, SIG_DFL);
        return;
    }
    if (setsid() >= 0) return;
    // A group leader must join another group of its session first (setsid(2)).
    if (setpgid(0, getpgid(getppid())) != 0 || setsid() < 0) refuse_session("leaving the caller's session");
}

} // namespace

void reset_timer_slack()
{
    constexpr unsigned long kernel_default = 50'000; // nanoseconds; 0 would mean the inherited one
    if (defence_is_on("timer-slack") && prctl(PR_SET_TIMERSLACK, kernel_default, 0, 0, 0) != 0) throw_errno("resetting the timer slack");
}

std::optional<std::string> take_sudo_uid()
{
    std::optional<std::string> value;
    if (const char *text = std::getenv("SUDO_UID")) value = text;
    if (defence_is_on("empty-environment") && clearenv() != 0)
        throw Failure(ExitStatus::system_failure, "the environment could not be emptied");
    return value;
}

UniqueFd take_channel(const AsRoot & /*root*/)
{
    UniqueFd channel = duplicate(FdRef(STDIN_FILENO));
    if (!channel) throw Failure(FailureKind::by_hand, "standard input is closed; pi runs this program; do not run it by hand");
    UniqueFd null = open_or_throw("opening /dev/null", "/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (dup2(null.get(), fd) < 0) throw_errno("replacing a standard descriptor");
    UniqueFd kept = UniqueFd::adopt(dup3(channel.get(), 3, O_CLOEXEC));
    if (channel.get() == 3) {
        kept = UniqueFd::adopt(channel.release());
    } else if (!kept) {
        throw_errno("keeping the wrapper's socket");
    }
    if (defence_is_on("close-descriptors") && close_range(4, ~0U, 0) != 0) throw_errno("closing inherited descriptors");
    static_cast<void>(channel.release()); // closed above
    static_cast<void>(null.release());    // closed above, or itself a standard descriptor that was missing
    return kept;
}

void require_host_namespaces(const AsRoot & /*root*/)
{
    // A process stays in its PID and time namespaces for life: unshare(2) changes only those of its children.
    const std::pair<std::string, const char *> kinds[] = {
        {"mnt", "paths lead elsewhere there, as in a container, or a service with PrivateTmp= or ProtectHome="},
        {"pid", "processes have other numbers there"},
        {"pid_for_children", "processes have other numbers there"},
        {"user", "its accounts are not those of the host"},
        {"cgroup", "control groups have other names there"},
        {"net", "the session would use the host's network instead"},
        {"ipc", "its shared memory is not the host's"},
        {"uts", "its host name is not the host's"},
        {"time", "its clocks are not the host's"},
        {"time_for_children", "its clocks are not the host's"}};
    for (const auto &[mine, what_differs] : kinds) {
        const std::string name = mine.substr(0, mine.find('_'));
        // A kernel without a kind of namespace lacks it for PID 1, too. The entry for children can be missing although the kernel has the
        // kind, as long as the namespace has no first process. Such a process is refused.
        if (!namespace_of("self", name) && errno == ENOENT && name != "mnt") continue;
        const auto own = namespace_of("self", mine);
        if (!own) throw_errno("reading /proc/self/ns/" + mine);
        const auto host = namespace_of("1", name);
        if (!host) // root can, except root of only a user namespace or a container
            throw Failure(FailureKind::namespaces, "denied: the host's " + name + " namespace cannot be seen from here (" +
                                                       SystemFailure(errno, "/proc/1/ns/" + name).what() +
                                                       "); run pi from an ordinary shell of this host. In a container, its first process "
                                                       "must run as root with the capabilities of all others; else give it CAP_SYS_PTRACE");
        if (own != host && defence_is_on("host-namespaces"))
            throw Failure(FailureKind::namespaces, "denied: called from another " + name +
                                                       " namespace than the host's (the one of PID 1): " + what_differs +
                                                       "; run pi from an ordinary shell of this host");
    }
}

void reset_process_state(const AsRoot & /*root*/)
{
    reset_limits(); // first: a failure here is recorded, and XFSZ would end that
    reset_signals();
    reset_scheduling();
    reset_memory_and_keys();
    leave_session();
    umask(077);
    if (chdir("/") != 0) throw_errno("changing to /");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) throw_errno("clearing dumpable");
    if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0) throw_errno("clearing the parent-death signal");
    if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) throw_errno("clearing keep_caps");
    if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != 0)
        throw Failure(FailureKind::caller, "denied: called with securebits set; run pi from an ordinary shell of this host");
}

} // namespace pi_agent

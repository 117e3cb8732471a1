// Calls made under the real filter, in a child each: runner/inside/agent_process.hpp
#include "runner/inside/agent_process.hpp"

#include "support/forked.hpp"
#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <future>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;

namespace seccomp_filter_test {

namespace {

// The errno of `call` under the filter: "0" where it succeeds.
// `with_list`: the list of calls is installed before it.
std::string under_filter(const std::function<long()> &call, bool with_list = false)
{
    return in_child([&] {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        if (with_list) install_call_filter();
        install_agent_call_filter();
        errno = 0;
        return std::to_string(call() < 0 ? errno : 0);
    });
}

std::string without_filter(const std::function<long()> &call)
{
    return in_child([&] {
        errno = 0;
        return std::to_string(call() < 0 ? errno : 0);
    });
}

const std::string denied = std::to_string(EPERM);
const std::string unknown = std::to_string(ENOSYS);

} // namespace

TEST_CASE("calls that reach around or out of the sandbox are denied before the kernel looks at them")
{
    struct Row {
        std::string name;
        long number;
    };
    // With arguments that the kernel itself would answer otherwise: EFAULT, EINVAL, EBADF, ESRCH.
    const std::vector<Row> rows = {
        {"io_uring_setup", SYS_io_uring_setup},
        {"io_uring_enter", SYS_io_uring_enter},
        {"io_uring_register", SYS_io_uring_register},
        {"userfaultfd", SYS_userfaultfd},
        {"pidfd_getfd", SYS_pidfd_getfd},
        {"add_key", SYS_add_key},
        {"request_key", SYS_request_key},
        {"keyctl", SYS_keyctl},
        {"open_by_handle_at", SYS_open_by_handle_at},
        {"bpf", SYS_bpf},
        {"perf_event_open", SYS_perf_event_open},
        {"mount", SYS_mount},
        {"umount2", SYS_umount2},
        {"open_tree", SYS_open_tree},
        {"move_mount", SYS_move_mount},
        {"fsopen", SYS_fsopen},
        {"fsconfig", SYS_fsconfig},
        {"fsmount", SYS_fsmount},
        {"fspick", SYS_fspick},
        {"mount_setattr", SYS_mount_setattr},
        {"pivot_root", SYS_pivot_root},
        {"chroot", SYS_chroot},
        {"unshare", SYS_unshare},
        {"setns", SYS_setns},
        {"init_module", SYS_init_module},
        {"finit_module", SYS_finit_module},
        {"delete_module", SYS_delete_module},
        {"kexec_load", SYS_kexec_load},
        {"quotactl", SYS_quotactl},
        {"swapon", SYS_swapon},
        {"swapoff", SYS_swapoff},
        {"reboot", SYS_reboot},
        {"acct", SYS_acct},
        {"settimeofday", SYS_settimeofday},
        {"clock_settime", SYS_clock_settime},
        {"clock_adjtime", SYS_clock_adjtime},
        {"adjtimex", SYS_adjtimex},
    };
    for (const auto &row : rows)
        CHECK_MESSAGE(under_filter([&] { return ::syscall(row.number, -1L, -1L, -1L, -1L, -1L, -1L); }) == denied, row.name);
}

TEST_CASE("what debuggers call passes, and is denied where it would not stay in the session")
{
    for (const long number : {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp}) {
        const auto call = [number] { return ::syscall(number, -1L, -1L, -1L, -1L, -1L, -1L); };
        CHECK_MESSAGE(under_filter(call) == without_filter(call), number);
        CHECK_MESSAGE(without_filter(call) != denied, number);
        CHECK_MESSAGE(under_filter([&] {
                          refuse_tracing();
                          return call();
                      }) == denied,
                      number);
    }
}

TEST_CASE("where a quota counts files, their attributes do not change, and everywhere else they do as before")
{
    for (const unsigned long request : {FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR | 0x100000000UL}) {
        const auto call = [request] { return ::syscall(SYS_ioctl, -1L, request, nullptr); };
        CHECK_MESSAGE(under_filter(call) == std::to_string(EBADF), request);
        CHECK_MESSAGE(under_filter([&] {
                          refuse_attributes();
                          return call();
                      }) == std::to_string(EOPNOTSUPP),
                      request);
    }
    CHECK(under_filter([] {
              refuse_attributes();
              return ::syscall(SYS_ioctl, -1L, FS_IOC_FSGETXATTR, nullptr);
          }) == std::to_string(EBADF));
    CHECK(under_filter([] {
              refuse_attributes();
              return ::syscall(469L, -1L, "x", nullptr, 0L, 0L); // file_setattr(2)
          }) == std::to_string(EOPNOTSUPP));
}

TEST_CASE("denied is not how these calls end without the filter")
{
    // Else the test above could not fail. Those that need a privilege end so without it, and are no proof.
    for (const long number : {SYS_pidfd_getfd, SYS_add_key, SYS_name_to_handle_at, SYS_unshare})
        CHECK_MESSAGE(without_filter([&] { return ::syscall(number, -1L, -1L, -1L, -1L, -1L, -1L); }) != denied, number);
}

TEST_CASE("calls that no filter can judge do not exist, so that libraries fall back")
{
    CHECK(under_filter([] {
              open_how how{};
              how.flags = O_RDONLY;
              return ::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how);
          }) == unknown);
    CHECK(under_filter([] { return ::syscall(SYS_clone3, nullptr, 0); }) == unknown);
}

TEST_CASE("threads, processes and files work under the filter")
{
    const TemporaryDirectory directory;
    CHECK(under_filter([] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(0);
              return static_cast<long>(::waitpid(child, nullptr, 0));
          }) == "0");
    CHECK(under_filter([&] { return static_cast<long>(::open((directory / "a").c_str(), O_WRONLY | O_CREAT, 0755)); }) == "0");
    CHECK(under_filter([&] { return static_cast<long>(::mkdir((directory / "b").c_str(), 01777)); }) == "0"); // sticky is no privilege
    CHECK(under_filter([&] { return static_cast<long>(::chmod((directory / "a").c_str(), 01777)); }) == "0");
    CHECK(under_filter([] { return static_cast<long>(::socket(AF_UNIX, SOCK_STREAM, 0)); }) == "0");
}

TEST_CASE("no call makes a setuid or setgid file or directory")
{
    const TemporaryDirectory directory;
    const std::string file = directory.write("file", "x");
    const std::string made = directory / "new";
    const char *path = file.c_str();
    const char *fresh = made.c_str();
    for (const mode_t bits : {04755U, 02755U, 06755U, 04000U, 02000U}) {
        CAPTURE(bits);
        const std::vector<std::pair<std::string, std::function<long()>>> calls = {
            {"chmod", [&] { return ::syscall(SYS_chmod, path, bits); }},
            {"fchmod", [&] { return ::syscall(SYS_fchmod, ::open(path, O_RDONLY), bits); }},
            {"fchmodat", [&] { return ::syscall(SYS_fchmodat, AT_FDCWD, path, bits); }},
            {"mknod", [&] { return ::syscall(SYS_mknod, fresh, S_IFREG | bits, 0); }},
            {"mknodat", [&] { return ::syscall(SYS_mknodat, AT_FDCWD, fresh, S_IFREG | bits, 0); }},
            {"creat", [&] { return ::syscall(SYS_creat, fresh, bits); }},
            {"open", [&] { return ::syscall(SYS_open, fresh, O_CREAT | O_WRONLY, bits); }},
            {"openat", [&] { return ::syscall(SYS_openat, AT_FDCWD, fresh, O_CREAT | O_EXCL | O_WRONLY, bits); }},
            {"open O_TMPFILE", [&] { return ::syscall(SYS_open, directory.path().c_str(), O_TMPFILE | O_WRONLY, bits); }},
            {"openat O_TMPFILE", [&] { return ::syscall(SYS_openat, AT_FDCWD, directory.path().c_str(), O_TMPFILE | O_WRONLY, bits); }},
            {"upper bits of the mode", [&] { return ::syscall(SYS_chmod, path, bits | 0xffff'ffff'0000'0000UL); }},
        };
        for (const auto &entry : calls) // clang 14 captures no structured binding
            CHECK_MESSAGE(under_filter(entry.second) == denied, entry.first);
    }
    struct stat facts {};
    REQUIRE(::stat(path, &facts) == 0);
    CHECK((facts.st_mode & 06000U) == 0);
    CHECK_FALSE(std::filesystem::exists(made));
}

TEST_CASE("mkdir makes no such directory, whatever it is asked for")
{
    const TemporaryDirectory directory;
    const std::string made = directory / "new";
    CHECK(under_filter([&] { return ::syscall(SYS_mkdir, made.c_str(), 06755); }) == "0");
    struct stat facts {};
    REQUIRE(::stat(made.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07000U) == 0);
}

namespace {

// The errno of `call` under the filter that asks, where the answer to each question is EXDEV; the end of the text counts the questions.
std::string while_asked(const std::function<long()> &call)
{
    return in_child([&] {
        UniqueFd questions;
        std::promise<void> installed;
        std::atomic<int> asked = 0;
        std::string said;
        std::thread caller([&] {
            questions = install_agent_call_filter(SetGidCalls::asked);
            installed.set_value();
            errno = 0;
            said = std::to_string(call() < 0 ? errno : 0);
        });
        installed.get_future().wait();
        std::thread([&] {
            for (;;) {
                alignas(8) std::array<char, 1024> told{};
                alignas(8) std::array<char, 1024> answer{};
                if (::ioctl(questions.get(), SECCOMP_IOCTL_NOTIF_RECV, told.data()) != 0) continue;
                ++asked;
                std::memcpy(answer.data(), told.data(), sizeof(std::uint64_t));
                reinterpret_cast<seccomp_notif_resp *>(answer.data())->error = -EXDEV;
                ::ioctl(questions.get(), SECCOMP_IOCTL_NOTIF_SEND, answer.data());
            }
        }).detach();
        caller.join();
        return said + " " + std::to_string(asked);
    });
}

} // namespace

TEST_CASE("the set-gid bit alone is asked for, and of files that are there alone")
{
    const TemporaryDirectory directory;
    const std::string place = directory.path();
    const char *path = place.c_str();
    const std::string made = directory / "new";
    const std::string asked = std::to_string(EXDEV) + " 1";
    const std::string refused = denied + " 0";
    for (const unsigned long upper : {0UL, 0xffff'ffffUL << 32U}) {
        CAPTURE(upper);
        CHECK(while_asked([&] { return ::syscall(SYS_chmod, path, upper | 02755); }) == asked);
        CHECK(while_asked([&] { return ::syscall(SYS_fchmod, ::open(path, O_RDONLY), upper | 02000); }) == asked);
        CHECK(while_asked([&] { return ::syscall(SYS_fchmodat, AT_FDCWD, path, upper | 03777); }) == asked);
        CHECK(while_asked([&] { return ::syscall(452, AT_FDCWD, path, upper | 02755, 0); }) == asked);
        CHECK(while_asked([&] { return ::syscall(SYS_chmod, path, upper | 06755); }) == refused);
        CHECK(while_asked([&] { return ::syscall(SYS_fchmodat, AT_FDCWD, path, upper | 04755); }) == refused);
        CHECK(while_asked([&] { return ::syscall(SYS_openat, AT_FDCWD, made.c_str(), O_CREAT | O_WRONLY, upper | 02755); }) == refused);
        CHECK(while_asked([&] { return ::syscall(SYS_mknod, made.c_str(), S_IFREG | 02755 | upper, 0); }) == refused);
        CHECK(while_asked([&] { return ::syscall(SYS_creat, made.c_str(), upper | 02755); }) == refused);
        CHECK(while_asked([&] { return ::syscall(SYS_chmod, path, upper | 0755); }) == "0 0");
    }
}

TEST_CASE("once nobody hears what is asked, the bit is given by no call")
{
    const TemporaryDirectory directory;
    const std::string place = directory.path();
    CHECK(in_child([&] {
              install_agent_call_filter(SetGidCalls::asked).reset();
              return std::to_string(::chmod(place.c_str(), 02755) < 0 ? errno : 0);
          }) == unknown);
    // One process has one such descriptor: a second filter refuses, as where somebody outside has one.
    CHECK(in_child([&] {
              const UniqueFd first = install_agent_call_filter(SetGidCalls::asked);
              const UniqueFd second = install_agent_call_filter(SetGidCalls::asked);
              return std::to_string(static_cast<int>(first.is_open())) + std::to_string(static_cast<int>(second.is_open())) +
                     std::to_string(::chmod(place.c_str(), 02755) < 0 ? errno : 0);
          }) == "10" + denied);
}

TEST_CASE("a netlink socket is one for routes")
{
    const std::string none = std::to_string(EPROTONOSUPPORT);
    for (const long upper : {0L, 1L << 32}) {
        CAPTURE(upper);
        CHECK(under_filter([&] { return ::syscall(SYS_socket, AF_NETLINK | upper, SOCK_RAW, NETLINK_ROUTE); }) == "0");
        for (long protocol = 1; protocol < 32; ++protocol)
            CHECK_MESSAGE(under_filter([&] { return ::syscall(SYS_socket, AF_NETLINK | upper, SOCK_RAW, protocol); }) == none, protocol);
        CHECK(under_filter([&] { return ::syscall(SYS_socket, AF_NETLINK | upper, SOCK_DGRAM, upper | NETLINK_GENERIC); }) == none);
    }
    CHECK(without_filter([] { return ::syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT); }) == "0");
}

TEST_CASE("a pair of sockets is one of AF_UNIX")
{
    std::array<int, 2> ends{};
    const auto pair = [&](long of) { return [&, of] { return ::syscall(SYS_socketpair, of, SOCK_STREAM, 0, ends.data()); }; };
    for (const long upper : {0L, 1L << 32})
        for (long family = 0; family < 64; ++family)
            CHECK_MESSAGE(under_filter(pair(family | upper)) == (family == AF_UNIX ? "0" : std::to_string(EAFNOSUPPORT)), family);
    CHECK(without_filter(pair(AF_INET)) == std::to_string(EOPNOTSUPP));
}

TEST_CASE("no snapshot is made, which would have what is masked")
{
    for (const unsigned long request : {0x50009401UL, 0x50009417UL, 0x150009417UL})
        CHECK_MESSAGE(under_filter([&] { return ::syscall(SYS_ioctl, -1L, request, nullptr); }) == denied, request);
}

TEST_CASE("who changes modes does nothing else")
{
    const TemporaryDirectory directory;
    const std::string place = directory.path();
    const auto alone = [&](const std::function<long()> &call) {
        const pid_t child = ::fork(); // which cannot say anything but its status
        if (child == 0) {
            install_mode_call_filter();
            errno = 0;
            ::syscall(SYS_exit_group, call() < 0 ? errno : 0); // the sanitizers' own way out calls more than that
        }
        int status = 0;
        return ::waitpid(child, &status, 0) == child ? std::to_string(WEXITSTATUS(status)) : "";
    };
    CHECK(alone([&] { return static_cast<long>(::chmod(place.c_str(), 02755)); }) == "0");
    CHECK(alone([] { return static_cast<long>(::open("/etc/passwd", O_RDONLY)); }) == denied);
    CHECK(alone([] { return ::syscall(SYS_execve, "/bin/true", nullptr, nullptr); }) == denied);
}

TEST_CASE("a mode that the kernel ignores is not judged")
{
    const TemporaryDirectory directory;
    const std::string file = directory.write("file", "x");
    CHECK(under_filter([&] { return ::syscall(SYS_open, file.c_str(), O_RDONLY, 06777); }) == "0");
    CHECK(under_filter([&] { return ::syscall(SYS_openat, AT_FDCWD, directory.path().c_str(), O_RDONLY | O_DIRECTORY, 06777); }) == "0");
}

TEST_CASE("limits are a process's own affair")
{
    rlimit limit{}; // what the tests' own process has anyway
    REQUIRE(::getrlimit(RLIMIT_CORE, &limit) == 0);
    CHECK(under_filter([&] { return ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit); }) == "0");
    CHECK(under_filter([&] { // which has lowered it already
              const rlimit none{0, 0};
              return static_cast<long>(::setrlimit(RLIMIT_CORE, &none));
          }) == "0");
    const pid_t outside = ::getpid();
    CHECK(without_filter([&] { return ::syscall(SYS_prlimit64, outside, RLIMIT_CORE, &limit, nullptr); }) == "0");
    CHECK(under_filter([&] { return ::syscall(SYS_prlimit64, outside, RLIMIT_CORE, &limit, nullptr); }) == denied);
    CHECK(under_filter([&] { return ::syscall(SYS_prlimit64, outside, RLIMIT_CORE, &limit, &limit); }) == denied);
    // The kernel looks at the lower half only: a pid beneath upper bits is no way around.
    CHECK(under_filter([&] { return ::syscall(SYS_prlimit64, (1L << 32) | outside, RLIMIT_CORE, &limit, nullptr); }) == denied);
    CHECK(under_filter([&] { return ::syscall(SYS_prlimit64, outside, RLIMIT_CORE, nullptr, nullptr); }) == "0"); // it only reads
}

TEST_CASE("scheduling is a process's own affair, and never a whole account's")
{
    constexpr int io_process = 1;
    constexpr int io_user = 3;
    constexpr int usual = (2 << 13) | 4; // what a process has anyway: the tests' own process is changed below
    cpu_set_t processors;
    CPU_ZERO(&processors);
    REQUIRE(::sched_getaffinity(0, sizeof processors, &processors) == 0);
    sched_param ordinary{};
    struct { // sched_attr: size, policy and flags, all else 0
        std::uint32_t size = 48;
        std::uint32_t policy = SCHED_OTHER;
        std::uint64_t rest[5] = {};
    } attributes;
    struct Row {
        std::string name;
        std::function<long(long)> call; // on a process; 0 is the caller itself
    };
    const std::vector<Row> rows = {
        {"sched_setaffinity", [&](long pid) { return ::syscall(SYS_sched_setaffinity, pid, sizeof processors, &processors); }},
        {"sched_setscheduler", [&](long pid) { return ::syscall(SYS_sched_setscheduler, pid, SCHED_OTHER, &ordinary); }},
        {"sched_setparam", [&](long pid) { return ::syscall(SYS_sched_setparam, pid, &ordinary); }},
        {"sched_setattr", [&](long pid) { return ::syscall(SYS_sched_setattr, pid, &attributes, 0); }},
        {"setpriority", [&](long pid) { return ::syscall(SYS_setpriority, PRIO_PROCESS, pid, ::getpriority(PRIO_PROCESS, 0)); }},
        {"ioprio_set", [&](long pid) { return ::syscall(SYS_ioprio_set, io_process, pid, usual); }},
    };
    for (const auto &row : rows) {
        CAPTURE(row.name);
        CHECK(under_filter([&] { return row.call(0); }) == "0");
        CHECK(without_filter([&] { return row.call(::getppid()); }) == "0");
        CHECK(under_filter([&] { return row.call(::getppid()); }) == denied);
        CHECK(under_filter([&] { return row.call((1L << 32) | ::getppid()); }) == denied);
    }
    for (const long upper : {0L, 1L << 32}) { // the kernel ignores the upper half
        CHECK(under_filter([&] { return ::syscall(SYS_setpriority, PRIO_USER | upper, 0, 0); }) == denied);
        CHECK(under_filter([&] { return ::syscall(SYS_ioprio_set, io_user | upper, 0, usual); }) == denied);
    }
}

TEST_CASE("nobody types into a terminal")
{
    int master = -1;
    int slave = -1;
    if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) {
        skipped("this place has no pseudo terminals");
        return;
    }
    const char letter = 'x';
    for (const unsigned long upper : {0UL, 1UL << 32U, 0xffff'ffffUL << 32U}) {
        CAPTURE(upper);
        CHECK(under_filter([&] { return ::syscall(SYS_ioctl, slave, TIOCSTI | upper, &letter); }) == denied);
        CHECK(under_filter([&] { return ::syscall(SYS_ioctl, master, TIOCSTI | upper, &letter); }) == denied);
        CHECK(under_filter([&] { return ::syscall(SYS_ioctl, slave, TIOCLINUX | upper, &letter); }) == denied);
    }
    winsize size{};
    CHECK(under_filter([&] { return ::syscall(SYS_ioctl, slave, TIOCGWINSZ, &size); }) == "0");
    ::close(master);
    ::close(slave);
}

#if defined(__x86_64__)
TEST_CASE("a call in another architecture's numbering ends the process")
{
    constexpr long x32 = 0x40000000;
    const std::string end = "died of signal " + std::to_string(SIGSYS);
    CHECK(under_filter([] { return ::syscall(x32 + SYS_getpid); }) == end);
    CHECK(under_filter([] { return ::syscall(x32 + SYS_ptrace, 0L, 0L, 0L, 0L); }) == end);
    // getpid through the 32-bit entry; a kernel without it ends the process too, with another signal.
    const std::string old = under_filter([] {
        ::signal(SIGSEGV, SIG_DFL); // else the sanitizer reports it and exits
        long result = 20;
        __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
        return result;
    });
    CHECK_MESSAGE((old == end || old == "died of signal " + std::to_string(SIGSEGV)), old);
}
#endif

TEST_CASE("the filter holds for what the process starts, and cannot be lifted")
{
    CHECK(under_filter([] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(::syscall(SYS_keyctl, 0L, 0L, 0L, 0L) < 0 && errno == EPERM ? 0 : 1);
              int status = 0;
              ::waitpid(child, &status, 0);
              errno = EIO;
              return status == 0 ? 0L : -1L;
          }) == "0");
    CHECK(in_child([] {
              install_agent_call_filter();
              return std::to_string(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) + std::to_string(::prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
          }) == "12");
}

namespace {

std::string under_call_filter(const std::function<long()> &call)
{
    return under_filter(call, true);
}

} // namespace

TEST_CASE("the list of calls lets ordinary work through")
{
    CHECK(under_call_filter([] { return static_cast<long>(::getpid()); }) == "0");
    CHECK(under_call_filter([] { return static_cast<long>(::open("/dev/null", O_RDWR)); }) == "0");
    CHECK(under_call_filter([] {
              return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0 ? ::syscall(SYS_exit_group, 0) : 0L;
          }) == "0");
    for (const int family : {AF_UNIX, AF_INET, AF_INET6})
        CHECK_MESSAGE(under_call_filter([&] { return static_cast<long>(::socket(family, SOCK_STREAM, 0)); }) == "0", family);
    CHECK(under_call_filter([] { return ::syscall(SYS_personality, 0xffffffffL); }) == "0");
}

TEST_CASE("the list of calls denies what a unit's properties deny, and calls that nobody has heard of")
{
    const auto refused = [](const std::function<long()> &call) {
        return under_call_filter(call) == denied && without_filter(call) != denied;
    };
    for (const int family : {AF_VSOCK, AF_ALG})
        CHECK_MESSAGE(refused([&] { return static_cast<long>(::socket(family, SOCK_SEQPACKET, 99)); }), family);
    CHECK(refused([] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | CLONE_THREAD, nullptr, nullptr, nullptr, nullptr); }));
    CHECK(refused([] { return ::syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, nullptr); }));
    CHECK(refused([] { return ::syscall(9999L); }));
    CHECK(refused([] { return ::syscall(SYS_ustat, 0, nullptr); }));
}

} // namespace seccomp_filter_test

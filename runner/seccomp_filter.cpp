// System calls that the agent never makes, by number and by argument; and those that root makes to the end.
#include "runner/seccomp_filter.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/fd.hpp"
#include "runner/call_names.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <linux/seccomp.h>
#include <memory>
#include <numeric>
#include <sched.h>
#include <seccomp.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

using Filter = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

// Around other restrictions (io_uring, io_uring-made sockets and files), into other processes, keyrings and file handles, or out of the
// view.
constexpr std::array denied = {
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "userfaultfd",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "ptrace",
    "add_key",
    "request_key",
    "keyctl",
    "name_to_handle_at",
    "open_by_handle_at",
    "bpf",
    "perf_event_open",
    "mount",
    "umount2",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    "reboot",
    "acct",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
};

// Their arguments lie in memory, where a filter cannot look; with ENOSYS libraries fall back to calls that it can judge.
constexpr std::array unknown = {"openat2", "clone3"};

struct ModeCall {
    const char *name;
    unsigned argument;
};

// Calls that can set the setuid or setgid bit of a file that then belongs to the user on the host.
constexpr std::array mode_calls = {
    ModeCall{"chmod", 1},   ModeCall{"fchmod", 1}, ModeCall{"fchmodat", 2}, ModeCall{"fchmodat2", 2}, ModeCall{"mkdir", 1},
    ModeCall{"mkdirat", 2}, ModeCall{"mknod", 1},  ModeCall{"mknodat", 2},  ModeCall{"creat", 1},
};

void check(int result, const char *what)
{
    if (result < 0) throw Failure(ExitStatus::unavailable, std::string("seccomp: ") + what + ": " + std::strerror(-result));
}

// A call that this architecture or libseccomp does not know is met by systemd's own filter, which knows numbers above the known ones.
bool is_known(const char *name, int &number)
{
    number = seccomp_syscall_resolve_name(name);
    return number != __NR_SCMP_ERROR;
}

// The library's macros for this are C only.
scmp_arg_cmp where(unsigned argument, scmp_compare comparison, scmp_datum_t first, scmp_datum_t second = 0)
{
    return {argument, comparison, first, second};
}

constexpr std::array<unsigned, 2> privilege_bits = {S_ISUID, S_ISGID};

void deny_mode_bits(const Filter &filter)
{
    for (const auto &call : mode_calls) {
        int number = 0;
        if (!is_known(call.name, number)) continue;
        for (const unsigned bit : privilege_bits)
            check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), number, 1, where(call.argument, SCMP_CMP_MASKED_EQ, bit, bit)),
                  call.name);
    }
    // open with O_CREAT or O_TMPFILE: the mode counts only then.
    for (const auto &[name, flags_argument] :
         {std::pair<const char *, unsigned>{"open", 1}, std::pair<const char *, unsigned>{"openat", 2}}) {
        int number = 0;
        if (!is_known(name, number)) continue;
        for (const unsigned bit : privilege_bits)
            for (const int flag : {O_CREAT, O_TMPFILE & ~O_DIRECTORY})
                check(seccomp_rule_add(
                          filter.get(), SCMP_ACT_ERRNO(EPERM), number, 2,
                          where(flags_argument, SCMP_CMP_MASKED_EQ, static_cast<scmp_datum_t>(flag), static_cast<scmp_datum_t>(flag)),
                          where(flags_argument + 1, SCMP_CMP_MASKED_EQ, bit, bit)),
                      name);
    }
}

constexpr std::array<scmp_datum_t, 7> namespaces = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                                    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

scmp_datum_t any_namespace()
{
    return std::accumulate(namespaces.begin(), namespaces.end(), scmp_datum_t{0}, std::bit_or<>());
}

// The unit's RestrictNamespaces= does that too, but systemd writes "none at all" down as an empty value, which it reads as "any" again: a
// reload between a unit's start and its first process takes it away (seen with systemd 252).
void deny_namespaces(const Filter &filter)
{
    for (const scmp_datum_t kind : namespaces)
        check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, where(0, SCMP_CMP_MASKED_EQ, kind, kind)), "clone");
}

// Limits and scheduling of other processes of the same uid, with which a second session under the same account could be crippled. Only 0,
// the caller itself, passes: a filter cannot tell whose another number is, so a thread that sets the affinity of another one of its own
// process is refused too.
void deny_tuning_of_others(const Filter &filter)
{
    constexpr std::array by_process = {"prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"};
    for (const char *name : by_process) {
        int number = 0;
        if (is_known(name, number)) check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), number, 1, where(0, SCMP_CMP_NE, 0)), name);
    }
    struct Kind {
        const char *name;
        scmp_datum_t whole_user; // 0 is then the caller's whole account
    };
    constexpr scmp_datum_t low_half = 0xffffffff; // all that the kernel looks at
    for (const auto &[name, whole_user] : {Kind{"setpriority", PRIO_USER}, Kind{"ioprio_set", 3}}) {
        int number = 0;
        if (!is_known(name, number)) continue;
        check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), number, 1, where(1, SCMP_CMP_NE, 0)), name);
        check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), number, 1, where(0, SCMP_CMP_MASKED_EQ, low_half, whole_user)), name);
    }
}

// Typing into a terminal (CVE-2017-5226); the upper half of the argument is ignored by the kernel, so it is masked away.
void deny_terminal_injection(const Filter &filter)
{
    constexpr scmp_datum_t low_half = 0xffffffff;
    for (const unsigned long request : {static_cast<unsigned long>(TIOCSTI), static_cast<unsigned long>(TIOCLINUX)})
        check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, where(1, SCMP_CMP_MASKED_EQ, low_half, request)),
              "ioctl");
}

Filter make_filter(std::uint32_t otherwise)
{
    Filter filter(seccomp_init(otherwise), seccomp_release);
    if (!filter) throw Failure(ExitStatus::unavailable, "seccomp: no filter could be made");
    // A call made as another architecture (32-bit, x32) ends the process.
    check(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "architecture");
    check(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 1), "no_new_privs");
    return filter;
}

// Lets `name` through when its argument, of which the kernel looks at the lower half, is `value` in the bits of `mask`.
void allow_if(const Filter &filter, const char *name, unsigned argument, scmp_datum_t mask, scmp_datum_t value)
{
    int number = 0;
    if (is_known(name, number))
        check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 1, where(argument, SCMP_CMP_MASKED_EQ, mask, value)), name);
}

void allow_unconditionally(const Filter &filter, const char *name)
{
    int number = 0;
    if (is_known(name, number) && number >= 0) check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0), name);
}

// What seccomp_load(3) does most of its time, without loading it.
std::vector<sock_filter> compile(const Filter &filter)
{
    const UniqueFd file = UniqueFd::adopt(memfd_create("filter", MFD_CLOEXEC));
    if (!file) throw_errno("seccomp: making a filter");
    check(seccomp_export_bpf(filter.get(), file.get()), "making a filter");
    std::vector<sock_filter> program(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)) / sizeof(sock_filter));
    const std::size_t size = program.size() * sizeof(sock_filter);
    if (size == 0 || program.size() > BPF_MAXINSNS || pread(file.get(), program.data(), size, 0) != static_cast<ssize_t>(size))
        throw Failure(ExitStatus::unavailable, "seccomp: no filter could be made");
    return program;
}

} // namespace

RootCallFilter::RootCallFilter()
{
    constexpr scmp_datum_t whole = 0xffffffff;
    const Filter filter = make_filter(SCMP_ACT_ERRNO(EPERM));
    for (const char *name : allowed_calls)
        if (std::find(std::begin(withheld_from_root), std::end(withheld_from_root), std::string_view(name)) == std::end(withheld_from_root))
            allow_unconditionally(filter, name);
    for (const char *name : root_calls)
        allow_unconditionally(filter, name);
    int number = 0;
    if (is_known("clone3", number)) check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), number, 0), "clone3");
    allow_if(filter, "clone", 0, any_namespace(), 0);
    for (const int family : {AF_UNIX, AF_INET, AF_INET6}) // the account database may be asked anywhere (nsswitch.conf(5))
        allow_if(filter, "socket", 0, whole, static_cast<scmp_datum_t>(family));
    for (const unsigned long request : {TCGETS, FIONREAD, FIONBIO, FIOCLEX}) // what libraries ask of descriptors
        allow_if(filter, "ioctl", 1, whole, request);
    program_ = compile(filter);
}

void RootCallFilter::install() const
{
    const sock_fprog program{static_cast<unsigned short>(program_.size()), const_cast<sock_filter *>(program_.data())};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) throw_errno("seccomp: installing the list of root's calls");
}

void install_call_filter()
{
    if (!defence_is_on("call-filter")) return;
    constexpr scmp_datum_t whole = 0xffffffff;
    const Filter filter = make_filter(SCMP_ACT_ERRNO(EPERM));
    for (const char *name : allowed_calls)
        allow_unconditionally(filter, name);
    for (const char *name : unknown) {
        int number = 0;
        if (is_known(name, number)) check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), number, 0), name);
    }
    allow_if(filter, "clone", 0, any_namespace(), 0);
    for (const int family : {AF_UNIX, AF_INET, AF_INET6})
        allow_if(filter, "socket", 0, whole, static_cast<scmp_datum_t>(family));
    for (const scmp_datum_t personality : {scmp_datum_t{PER_LINUX}, whole}) // the usual one, and the question which it is
        allow_if(filter, "personality", 0, whole, personality);
    for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE})
        allow_if(filter, "sched_setscheduler", 1, whole, static_cast<scmp_datum_t>(policy));
    check(seccomp_load(filter.get()), "installing the list of calls");
}

void install_seccomp_filter()
{
    if (!defence_is_on("seccomp-filter")) return;
    const Filter filter = make_filter(SCMP_ACT_ALLOW);
    for (const char *name : denied) {
        int number = 0;
        if (is_known(name, number)) check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), number, 0), name);
    }
    for (const char *name : unknown) {
        int number = 0;
        if (is_known(name, number)) check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), number, 0), name);
    }
    deny_mode_bits(filter);
    deny_namespaces(filter);
    deny_terminal_injection(filter);
    if (defence_is_on("limits-of-others")) deny_tuning_of_others(filter);
    check(seccomp_load(filter.get()), "installing the filter");
}

} // namespace pi_agent

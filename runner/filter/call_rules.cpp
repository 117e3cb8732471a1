// System calls that the agent never makes, and those that it makes with certain arguments only.
#include "runner/filter/call_rules.hpp"

#include "runner/filter/call_names.hpp"

#include <array>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace pi_agent {

namespace {

struct ModeCall {
    const char *name;
    unsigned argument;
};

// Calls that can set the setuid or setgid bit of a file that then belongs to the user on the host: of an existing one, and of a new one.
// Not mkdir(2), where the kernel takes neither from the mode.
constexpr std::array changing_calls = {ModeCall{"chmod", 1}, ModeCall{"fchmod", 1}, ModeCall{"fchmodat", 2}, ModeCall{"fchmodat2", 2}};
constexpr std::array making_calls = {ModeCall{"mknod", 1}, ModeCall{"mknodat", 2}, ModeCall{"creat", 1}};

// open with O_CREAT or O_TMPFILE: the mode counts only then.
constexpr std::array opening_calls = {ModeCall{"open", 2}, ModeCall{"openat", 3}};

constexpr std::array<std::uint64_t, 2> privilege_bits = {S_ISUID, S_ISGID};

ArgumentTest has_bits(unsigned index, std::uint64_t bits)
{
    return {index, bits, bits};
}

constexpr std::array<std::uint64_t, 7> namespaces = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                                     CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

// For agents and root: clone(2) without namespaces, and sockets. Root needs sockets because its account database may be anywhere
// (nsswitch.conf(5)).
std::vector<CallAllowance> shared_allowances()
{
    std::uint64_t any_namespace = 0;
    for (const auto kind : namespaces)
        any_namespace |= kind;
    std::vector<CallAllowance> allowances = {{"clone", {0, any_namespace, 0}}};
    for (const int family : {AF_UNIX, AF_INET, AF_INET6})
        allowances.push_back({"socket", {0, low_half, static_cast<std::uint64_t>(family)}});
    return allowances;
}

// Only netlink sockets of NETLINK_ROUTE pass: they read interfaces, addresses and routes (rtnetlink(7)), and changing those takes a
// capability. Each other protocol is a part of the kernel of its own. Calls for one end as in a kernel without it.
void add_netlink(std::vector<CallDenial> &denials)
{
    const ArgumentTest is_netlink{0, low_half, AF_NETLINK};
    denials.push_back({"socket", {is_netlink, {2, whole_argument, NETLINK_ROUTE, false}}, EPROTONOSUPPORT});
}

// Only pairs of AF_UNIX pass. systemd's RestrictAddressFamilies= looks at socket(2) alone, but the kernel loads and enters each family that
// socketpair(2) names, and TIPC has pairs, whose ends reach others, too. Every other family lacks the one bit of AF_UNIX or has a higher
// one.
void add_pairs(std::vector<CallDenial> &denials)
{
    constexpr unsigned family_bits = 8; // the kernel has fewer than 64 families, and refuses what is higher
    static_assert(AF_UNIX == 1);
    denials.push_back({"socketpair", {{0, AF_UNIX, 0}}, EAFNOSUPPORT});
    for (unsigned bit = 1; bit < family_bits; ++bit)
        denials.push_back({"socketpair", {has_bits(0, std::uint64_t{1} << bit)}, EAFNOSUPPORT});
}

} // namespace

const std::vector<CallDenial> &unknown_calls()
{
    static const std::vector<CallDenial> calls = {{"openat2", {}, ENOSYS}, {"clone3", {}, ENOSYS}};
    return calls;
}

std::vector<CallDenial> set_gid_calls()
{
    std::vector<CallDenial> calls;
    for (const auto &call : changing_calls)
        calls.push_back({call.name, {{call.argument, S_ISUID | S_ISGID, S_ISGID}}, EPERM});
    return calls;
}

std::vector<CallDenial> unknown_group_calls()
{
    std::vector<CallDenial> calls;
    for (const auto &call : {ModeCall{"chown", 2}, ModeCall{"lchown", 2}, ModeCall{"fchown", 2}, ModeCall{"fchownat", 3}})
        calls.push_back({call.name, {{call.argument, low_half, unknown_group}}, EINVAL});
    return calls;
}

std::vector<CallDenial> plain_list_calls()
{
    std::vector<CallDenial> calls;
    for (const char *name : {"setxattr", "lsetxattr", "fsetxattr"})
        calls.push_back({name, {{3, ~std::uint64_t{0}, plain_list_size}}, 0});
    return calls;
}

std::vector<CallDenial> call_denials(SetGidCalls set_gid)
{
    std::vector<CallDenial> denials;
    for (const char *name : denied_calls)
        denials.push_back({name, {}, EPERM});
    denials.insert(denials.end(), unknown_calls().begin(), unknown_calls().end());
    for (const auto &call : making_calls)
        for (const auto bit : privilege_bits)
            denials.push_back({call.name, {has_bits(call.argument, bit)}, EPERM});
    for (const auto &call : changing_calls)
        denials.push_back({call.name, {has_bits(call.argument, S_ISUID)}, EPERM});
    if (set_gid == SetGidCalls::refused)
        for (auto &call : set_gid_calls())
            denials.push_back(std::move(call));
    for (const auto &call : opening_calls)
        for (const auto bit : privilege_bits)
            for (const int flag : {O_CREAT, O_TMPFILE & ~O_DIRECTORY})
                denials.push_back(
                    {call.name, {has_bits(call.argument - 1, static_cast<std::uint64_t>(flag)), has_bits(call.argument, bit)}, EPERM});
    // The unit's RestrictNamespaces= does that too. But systemd writes "none at all" down as an empty value, which it reads as "any" again:
    // a reload between a unit's start and its first process takes the restriction away (seen with systemd 252).
    for (const auto kind : namespaces)
        denials.push_back({"clone", {has_bits(0, kind)}, EPERM});
    // Typing into a terminal (CVE-2017-5226); the upper half of the argument is ignored by the kernel, so it is masked away.
    for (const std::uint64_t request : {std::uint64_t{TIOCSTI}, std::uint64_t{TIOCLINUX}})
        denials.push_back({"ioctl", {{1, low_half, request}}, EPERM});
    add_netlink(denials);
    add_pairs(denials);
    // The kernel asks the holder of a lease on a file before anybody else opens it, and the holder may keep them waiting (fcntl(2): 45 s).
    // That would hit the user, who owns the files of the project, and every program of theirs. A delegation (Linux 6.19) is a lease that
    // directories have as well.
    constexpr std::uint64_t set_delegation = 1040; // F_SETDELEG, newer than our headers
    for (const std::uint64_t command : {std::uint64_t{F_SETLEASE}, set_delegation})
        denials.push_back({"fcntl", {{1, low_half, command}}, EPERM});
    return denials;
}

// BTRFS_IOC_SNAP_CREATE and its second version, by number: linux/btrfs.h is for C alone.
std::vector<CallDenial> snapshot_denials()
{
    std::vector<CallDenial> denials;
    for (const std::uint64_t request : {std::uint64_t{0x50009401}, std::uint64_t{0x50009417}})
        denials.push_back({"ioctl", {{1, low_half, request}}, EPERM});
    return denials;
}

std::vector<CallDenial> trace_denials()
{
    std::vector<CallDenial> denials;
    for (const char *name : trace_calls)
        denials.push_back({name, {}, EPERM});
    return denials;
}

// As on a file system without such attributes, which programs bear. With FS_IOC_SETFLAGS a directory would pass its project on no more. For
// file_setattr(2) (Linux 6.17) the attributes are in memory.
std::vector<CallDenial> attribute_denials()
{
    std::vector<CallDenial> denials;
    for (const std::uint64_t request : {std::uint64_t{FS_IOC_FSSETXATTR}, std::uint64_t{FS_IOC_SETFLAGS}})
        denials.push_back({"ioctl", {{1, low_half, request}}, EOPNOTSUPP});
    denials.push_back({"file_setattr", {}, EOPNOTSUPP});
    return denials;
}

// These could cripple a second session under the same account. Only 0, the caller itself, passes: a filter cannot tell who owns another
// number. So a thread that sets the affinity of another thread of its own process is refused too.
std::vector<CallDenial> tuning_denials()
{
    std::vector<CallDenial> denials;
    for (const char *name : {"prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"})
        denials.push_back({name, {{0, whole_argument, 0, false}}, EPERM});
    struct Kind {
        const char *name;
        std::uint64_t whole_user; // 0 is then the caller's whole account
    };
    for (const auto &kind : {Kind{"setpriority", PRIO_USER}, Kind{"ioprio_set", 3}}) {
        denials.push_back({kind.name, {{1, whole_argument, 0, false}}, EPERM});
        denials.push_back({kind.name, {{0, low_half, kind.whole_user}}, EPERM});
    }
    return denials;
}

std::vector<CallAllowance> call_allowances()
{
    std::vector<CallAllowance> allowances = shared_allowances();
    allowances.push_back({"socket", {0, low_half, AF_NETLINK}});                 // add_netlink() says which
    for (const std::uint64_t personality : {std::uint64_t{PER_LINUX}, low_half}) // the usual one, and the question which it is
        allowances.push_back({"personality", {0, low_half, personality}});
    for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE})
        allowances.push_back({"sched_setscheduler", {1, low_half, static_cast<std::uint64_t>(policy)}});
    return allowances;
}

std::vector<CallAllowance> root_call_allowances()
{
    std::vector<CallAllowance> allowances = shared_allowances();
    for (const std::uint64_t request : {std::uint64_t{TCGETS}, std::uint64_t{FIONREAD}, std::uint64_t{FIONBIO},
                                        std::uint64_t{FIOCLEX}}) // what libraries ask of descriptors
        allowances.push_back({"ioctl", {1, low_half, request}});
    return allowances;
}

std::vector<CallAllowance> gate_call_allowances()
{
    std::vector<CallAllowance> allowances;
    for (const int family : {AF_UNIX, AF_INET, AF_INET6}) // the resolver may be a service of the host's
        allowances.push_back({"socket", {0, low_half, static_cast<std::uint64_t>(family)}});
    for (const std::uint64_t request : {std::uint64_t{FIONREAD}, std::uint64_t{FIONBIO}})
        allowances.push_back({"ioctl", {1, low_half, request}});
    for (const auto &call : {ModeCall{"open", 1}, ModeCall{"openat", 2}}) // to read
        allowances.push_back({call.name, {call.argument, O_ACCMODE | O_CREAT | O_TRUNC, 0}});
    // Memory is either written or run: modules of the resolver are mapped from their files. As MemoryDenyWriteExecute= has it
    // (systemd.exec(5)), without its calls that are in no list of a gate.
    allowances.push_back({"mmap", {2, PROT_EXEC, 0}});
    allowances.push_back({"mmap", {2, PROT_WRITE | PROT_EXEC, PROT_EXEC}});
    allowances.push_back({"mprotect", {2, PROT_EXEC, 0}});
    return allowances;
}

} // namespace pi_agent

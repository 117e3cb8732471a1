// The canary's questions. The kernel answers each one differently when a defence is missing.
#include "runner/inside/canary.hpp"

#include "common/host/namespaces.hpp"
#include "runner/inside/landlock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pi_agent {

namespace {

using Findings = std::vector<CanaryFinding>;

std::string word_for(int error)
{
    const char *name = strerrorname_np(error);
    return name == nullptr ? std::to_string(error) : name;
}

// `error` is 0 when a call went through that should have been refused.
void expect_refusal(Findings &findings, const std::string &what, int error)
{
    findings.push_back({what, "refused", error == 0 ? "done" : "refused (" + word_for(error) + ")", error != 0});
}

void expect(Findings &findings, const std::string &what, const std::string &expected, const std::string &seen)
{
    findings.push_back({what, expected, seen, expected == seen});
}

// errno, or 0 when a file could be made there; it is gone again.
int try_write(const std::string &directory)
{
    const std::string file = directory + "/.pi-agent-canary-" + std::to_string(getpid());
    const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    close(fd);
    unlink(file.c_str());
    return 0;
}

int try_open(const std::string &path, int flags)
{
    const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno;
    close(fd);
    return 0;
}

std::vector<std::string> names_in(const std::string &path)
{
    std::vector<std::string> names;
    std::error_code problem; // what cannot be listed shows nothing
    for (std::filesystem::directory_iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem))
        names.push_back(entry->path().filename());
    return names;
}

void look_at_writing(Findings &findings, const CanaryPlan &plan)
{
    for (const char *place :
         {"/", "/etc", "/usr", "/usr/bin", "/var", "/var/lib", "/home", "/root", "/run", "/dev", "/sys", "/proc/sys/kernel"})
        expect_refusal(findings, std::string("write ") + place, try_write(place));
    if (plan.project.compare(0, plan.user_home.size() + 1, plan.user_home + "/") == 0) // otherwise the home need not exist inside
        expect_refusal(findings, "write " + plan.user_home, try_write(plan.user_home));
    const char *temporary = std::getenv("TMPDIR");
    for (const std::string &place : {plan.project, plan.home, std::string(temporary == nullptr ? "" : temporary), std::string("/tmp"),
                                     std::string("/var/tmp"), std::string("/dev/shm")}) {
        const int error = try_write(place);
        expect(findings, "write " + place, "done", error == 0 ? "done" : "refused (" + word_for(error) + ")");
    }
}

// 0 when something is there; an empty directory does not count.
int try_find(const std::string &path)
{
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) return errno;
    return S_ISDIR(facts.st_mode) && names_in(path).empty() ? ENOENT : 0;
}

// Checks the mounts themselves: what the agent may not write for other reasons, too, must not depend on those reasons alone.
void look_at_mounts(Findings &findings, const CanaryPlan &plan)
{
    const auto flag = [](const std::string &path, unsigned long wanted) {
        struct statvfs facts {};
        if (statvfs(path.c_str(), &facts) != 0) return std::string("unknown (") + word_for(errno) + ")";
        return std::string((facts.f_flag & wanted) != 0 ? "yes" : "no");
    };
    const std::vector<std::string> read_only = {"/", "/etc", "/usr", "/home", "/run", "/dev", "/sys"};
    for (const auto &path : plan.confined ? read_only : std::vector<std::string>{})
        expect(findings, path + " is read-only", "yes", flag(path, ST_RDONLY));
    for (const std::string &path :
         {plan.project, plan.home, std::string("/tmp"), std::string("/var/tmp"), std::string("/dev/shm"), std::string("/usr")}) {
        expect(findings, path + " is without setuid programs", "yes", flag(path, ST_NOSUID));
        expect(findings, path + " is without devices", "yes", flag(path, ST_NODEV));
    }
}

void look_at_sight(Findings &findings, const CanaryPlan &plan)
{
    std::vector<std::string> unread = {"/etc/shadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key",
                                       "/proc/kcore", "/proc/kmsg",   "/dev/mem"};
    // Devices that hosts open to all their accounts: an agent without a sandbox has them.
    if (plan.confined) unread.insert(unread.end(), {"/dev/kmsg", "/dev/fuse", "/dev/net/tun"});
    for (const auto &path : unread)
        expect_refusal(findings, "read " + path, try_open(path, O_RDONLY));
    for (const char *path : {"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/kernel/mm/ksm/run"})
        expect_refusal(findings, std::string("open for writing ") + path, try_open(path, O_WRONLY));
    for (const char *path : {"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/socket",
                             "/run/systemd/journal/dev-log", "/run/docker.sock", "/run/podman/podman.sock",
                             "/run/containerd/containerd.sock", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/debug", "/boot", "/run/sudo"})
        expect_refusal(findings, std::string("find ") + path, try_find(path));
    for (const char *path : {".ssh", ".gnupg", ".bash_history", ".profile"})
        expect_refusal(findings, "find " + plan.user_home + "/" + path,
                       access((plan.user_home + "/" + path).c_str(), F_OK) == 0 ? 0 : errno);
    // STATE_DIR/users: it may show the agent's own user alone.
    const std::string users = plan.home.substr(0, plan.home.rfind('/', plan.home.rfind('/') - 1));
    expect(findings, "homes of other agents", "none", names_in(users).size() <= 1 ? "none" : "some");
}

// Only the session's own processes may be there, and the first one of a sandbox.
void look_at_processes(Findings &findings)
{
    int others = 0;
    for (const auto &name : names_in("/proc")) {
        if (name.find_first_not_of("0123456789") != std::string::npos || name == "1") continue;
        struct stat facts {};
        if (stat(("/proc/" + name).c_str(), &facts) == 0 && facts.st_uid != getuid()) ++others;
    }
    expect(findings, "processes of others", "none", others == 0 ? "none" : std::to_string(others));
    struct stat first {};
    const bool hidden = stat("/proc/1", &first) != 0;
    std::string name;
    std::ifstream("/proc/1/comm") >> name;
    const bool of_sandbox = name == "bwrap" || first.st_uid == getuid();
    expect(findings, "the host's first process", "hidden", hidden || of_sandbox ? "hidden" : "visible (" + name + ")");
}

void look_at_identity(Findings &findings)
{
    std::ifstream status("/proc/self/status");
    std::map<std::string, std::string> facts;
    for (std::string line; std::getline(status, line);) {
        const std::size_t colon = line.find(":\t");
        if (colon != std::string::npos) facts[line.substr(0, colon)] = line.substr(colon + 2);
    }
    for (const char *set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
        expect(findings, std::string("capabilities (") + set + ")", std::string(16, '0'), facts[set]);
    expect(findings, "no new privileges", "1", facts["NoNewPrivs"]);
    expect(findings, "system call filter", "2", facts["Seccomp"]);
    expect(findings, "account", "not root", getuid() == 0 || getgid() == 0 ? "root" : "not root");
    std::array<gid_t, 64> groups{};
    const int count = getgroups(static_cast<int>(groups.size()), groups.data());
    bool root_group = count < 0;
    for (int index = 0; index < count; ++index)
        root_group = root_group || groups.at(static_cast<std::size_t>(index)) == 0;
    expect(findings, "group of root", "not a member", root_group ? "member" : "not a member");
    rlimit core{};
    expect(findings, "core files", "none", getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0 ? "none" : "possible");
}

void look_at_namespaces(Findings &findings, const CanaryPlan &plan)
{
    for (const auto &[kind, host] : plan.namespaces) {
        const auto own = namespace_of("self", kind);
        expect(findings, kind + " namespace", "its own", own && std::to_string(own->inode) != host ? "its own" : "the host's");
    }
}

// The errno of a call, 0 when it went through. The call is made in a child, so that it changes nothing in this process.
int try_call(const std::array<long, 7> &call)
{
    const pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) {
        const long result = syscall(call[0], call[1], call[2], call[3], call[4], call[5], call[6]);
        _exit(result < 0 ? errno : 0); // a call that forks, too: both say the same
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

void look_at_calls(Findings &findings, const CanaryPlan &plan)
{
    struct Row {
        const char *what = nullptr;
        std::array<long, 7> call = {};
        const char *name = ""; // of a call that the policy can allow
    };
    const long launcher = getppid();
    char seen = 0;
    const iovec here{&seen, 1}, there{&seen, 1}; // the latter is an address of the launcher's
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): a system call takes it as a number
    const auto address = [](const iovec &part) { return reinterpret_cast<long>(&part); };
    const std::array<Row, 16> rows = {{
        {"io_uring_setup", {SYS_io_uring_setup, -1, -1}},
        {"userfaultfd", {SYS_userfaultfd, -1}},
        {"process_vm_readv of the launcher", {SYS_process_vm_readv, launcher, address(here), 1, address(there), 1, 0}},
        {"kcmp with the launcher", {SYS_kcmp, launcher, getpid(), 0, 0, 0}},
        {"ptrace of the launcher", {SYS_ptrace, PTRACE_SEIZE, launcher, 0, 0}},
        {"pidfd_getfd", {SYS_pidfd_getfd, -1, -1, 0}},
        {"add_key", {SYS_add_key, -1, -1, -1, -1, -1}},
        {"keyctl", {SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1}},
        {"name_to_handle_at", {SYS_name_to_handle_at, -1, -1, -1, -1, -1}, "name_to_handle_at"},
        {"a user namespace (unshare)", {SYS_unshare, CLONE_NEWUSER}},
        {"a user namespace (clone)", {SYS_clone, CLONE_NEWUSER | SIGCHLD}},
        {"a netlink socket for more than routes", {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT}},
        {"a socket of another family", {SYS_socket, AF_VSOCK, SOCK_STREAM, 0}},
        {"another personality", {SYS_personality, 0x0040000}, "personality"},
        {"a key pressed for the terminal (TIOCSTI)", {SYS_ioctl, 0, TIOCSTI, 0}},
        {"openat2", {SYS_openat2, -1, -1, -1, -1}},
    }};
    for (const auto &row : rows) {
        if (std::count(plan.allowed_calls.begin(), plan.allowed_calls.end(), row.name) != 0) continue;
        const int error = try_call(row.call);
        const bool is_refused = error == EPERM || error == ENOSYS || error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
        findings.push_back({row.what, "refused", error == 0 ? "done" : word_for(error), is_refused});
    }
    // Only reported: a refusal is not a fault where the policy or the host decides so (hardening.tracing).
    const int own = try_call({SYS_ptrace, PTRACE_TRACEME});
    findings.push_back({"a debugger of its own processes", "done", own == 0 ? "done" : word_for(own), true});
}

// The user owns what is made in the project.
void look_at_modes(Findings &findings, const CanaryPlan &plan)
{
    const std::string file = plan.project + "/.pi-agent-canary-mode-" + std::to_string(getpid());
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) { // not tried, and so not held
        findings.push_back({setuid_in_project, "refused", "not made (" + word_for(errno) + ")", false});
        return;
    }
    expect_refusal(findings, setuid_in_project, fchmod(fd, 04700) == 0 ? 0 : errno);
    close(fd);
    unlink(file.c_str());
}

} // namespace

std::vector<CanaryFinding> look_around(const CanaryPlan &plan)
{
    Findings findings;
    look_at_writing(findings, plan);
    look_at_mounts(findings, plan);
    look_at_sight(findings, plan);
    if (plan.confined) look_at_processes(findings);
    look_at_identity(findings);
    look_at_namespaces(findings, plan);
    if (plan.confined) look_at_calls(findings, plan);
    // A session goes without Landlock where this host lacks it (runner/inside/landlock.hpp): not a fault, but worth reporting.
    if (plan.confined) findings.push_back({"Landlock", landlock_is_there, landlock_here(), true});
    look_at_modes(findings, plan);
    return findings;
}

} // namespace pi_agent

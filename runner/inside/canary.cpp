// The canary's questions. The kernel, or the gate, answers each one differently when a defence is missing.
#include "runner/inside/canary.hpp"

#include "common/decide/explained.hpp"
#include "common/host/identity.hpp"
#include "runner/inside/agent_process.hpp"
#include "runner/plan/host_view.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

using Findings = std::vector<CanaryFinding>;

// "EPERM".
std::string word_for(int error)
{
    const char *name = strerrorname_np(error);
    return name == nullptr ? std::to_string(error) : name;
}

void expect(Findings &findings, const std::string &what, const std::string &expected, const std::string &seen)
{
    findings.push_back({what, expected, seen, expected == seen});
}

// `error` is 0 when a call went through that should have been refused.
void expect_refusal(Findings &findings, const std::string &what, int error)
{
    findings.push_back({what, "refused", error == 0 ? "done" : "refused (" + word_for(error) + ")", error != 0});
}

// errno, or 0 when a file could be made there; it is gone again.
int try_write(const std::string &directory)
{
    const std::string file = directory + "/.pi-agent-canary-" + std::to_string(getpid());
    const UniqueFd made = UniqueFd::adopt(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!made) return errno;
    unlink(file.c_str());
    return 0;
}

int try_open(const std::string &path, int flags)
{
    return UniqueFd::adopt(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) ? 0 : errno;
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
    for (const std::string &place :
         std::set<std::string>{plan.project, plan.home, temporary == nullptr ? "/tmp" : temporary, "/tmp", "/var/tmp", "/dev/shm"}) {
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
        if (const std::size_t colon = line.find(":\t"); colon != std::string::npos) facts[line.substr(0, colon)] = line.substr(colon + 2);
    }
    for (const char *set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
        expect(findings, std::string("capabilities (") + set + ")", std::string(16, '0'), facts[set]);
    expect(findings, "no new privileges", "1", facts["NoNewPrivs"]);
    expect(findings, "system call filter", "2", facts["Seccomp"]);
    expect(findings, "account", "not root", getuid() == 0 || getgid() == 0 ? "root" : "not root");
    std::array<gid_t, 64> groups{};
    const int count = getgroups(static_cast<int>(groups.size()), groups.data());
    const bool root_group = count < 0 || std::find(groups.begin(), groups.begin() + count, gid_t{0}) != groups.begin() + count;
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
        {"another personality", {SYS_personality, 0x0400000}, "personality"},
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
    const UniqueFd made = UniqueFd::adopt(open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!made) { // not tried, and so not held
        findings.push_back({setuid_in_project, "refused", "not made (" + word_for(errno) + ")", false});
        return;
    }
    expect_refusal(findings, setuid_in_project, fchmod(made.get(), 04700) == 0 ? 0 : errno);
    unlink(file.c_str());
}

constexpr int patience_seconds = 2;
// Names and addresses that nobody has (RFC 2606, 5737, 3849).
constexpr const char *nobodys_name = "canary.invalid";
constexpr const char *nobodys_address = "192.0.2.1";
constexpr const char *nobodys_v6 = "2001:db8::1";

// What comes back, one read of it; or the word for what went wrong.
std::string ask(const char *address, std::uint16_t port, int type, const std::string &question)
{
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = type;
    addrinfo *found = nullptr;
    if (const int problem = getaddrinfo(address, std::to_string(port).c_str(), &hints, &found); problem != 0) return gai_strerror(problem);
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> server(found, &freeaddrinfo);
    const UniqueFd made = UniqueFd::adopt(socket(server->ai_family, type | SOCK_CLOEXEC, 0));
    if (!made) return word_for(errno);
    const timeval patience{patience_seconds, 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
        setsockopt(made.get(), SOL_SOCKET, option, &patience, sizeof patience);
    std::array<char, 256> bytes{};
    const bool is_asked = connect(made.get(), server->ai_addr, server->ai_addrlen) == 0 &&
                          send(made.get(), question.data(), question.size(), MSG_NOSIGNAL) >= 0;
    const ssize_t length = is_asked ? recv(made.get(), bytes.data(), bytes.size(), 0) : -1;
    return length < 0 ? word_for(errno) : std::string(bytes.data(), static_cast<std::size_t>(length));
}

// An answer of a server, as opposed to an end, a refusal, or the gate's denial.
bool is_answered(const std::string &answer)
{
    return answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 3") || answer.starts_with("SSH-");
}

// An order to change the routes, which needs a right in the namespace; the kernel checks that first (rtnetlink(7)).
int try_route()
{
    const UniqueFd made = UniqueFd::adopt(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!made) return errno;
    struct Order {
        nlmsghdr header;
        rtmsg route;
    } order{};
    order.header = {sizeof order, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK, 1, 0};
    order.route.rtm_family = AF_INET;
    struct Answer {
        nlmsghdr header;
        nlmsgerr result;
    } answer{};
    const timeval patience{patience_seconds, 0};
    setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const bool is_answered = send(made.get(), &order, sizeof order, 0) > 0 && recv(made.get(), &answer, sizeof answer, 0) > 0;
    return is_answered ? -answer.result.error : errno;
}

std::string ask_for_tunnel(const std::string &place)
{
    return ask(loopback_v4, gate_proxy_port, SOCK_STREAM, "CONNECT " + place + " HTTP/1.1\r\nHost: " + place + "\r\n\r\n");
}

// Whether the proxy above the gate leads to the first host of the policy that is reached by it.
void look_at_proxy(Findings &findings)
{
    const auto hosts = find_session_hosts("/");
    if (!hosts || !hosts->network.via) return;
    const NetworkPolicy &network = hosts->network;
    const auto first = std::find_if(network.hosts.begin(), network.hosts.end(), [&](const HostRule &rule) {
        return !is_wildcard(rule) && rule.host.find('/') == std::string::npos && goes_by_proxy(network, rule);
    });
    if (first == network.hosts.end()) return;
    const std::string place = host_and_port(first->host, first->port);
    const std::string answer = ask_for_tunnel(place);
    constexpr std::string_view field = "x-pi-agent-denied: ";
    const auto said = answer.find(field) == std::string::npos ? 0 : answer.find(field) + field.size();
    findings.push_back(
        {"the proxy " + host_and_port(network.via->host, network.via->port) + " (" + to_string(network.via->where) + ") about " + place,
         canary_tunnel, answer.starts_with("HTTP/1.1 200") ? canary_tunnel : answer.substr(said, answer.find('\r', said) - said), true});
}

// The canary's questions about a network of hosts: that nothing but the gate answers, and that it denies what no policy names.
void look_at_gate(Findings &findings)
{
    const std::vector<std::string> found = names_in("/sys/class/net"); // none in a view without /sys/class
    const auto devices = joined(std::set(found.begin(), found.end()), ", ");
    if (!devices.empty()) expect(findings, "network devices", "lo", devices);
    const std::string web = "GET / HTTP/1.1\r\nHost: " + std::string(nobodys_name) + "\r\n\r\n";
    for (const char *address : {nobodys_address, nobodys_v6})
        for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{443}, std::uint16_t{22}, std::uint16_t{8443}}) {
            const std::string answer = ask(address, port, SOCK_STREAM, web);
            findings.push_back({"a server at " + std::string(address) + " port " + std::to_string(port), "no answer",
                                is_answered(answer) ? "an answer" : "no answer", !is_answered(answer)});
        }
    const std::string datagram = ask(nobodys_address, 53, SOCK_DGRAM, std::string(12, '\0'));
    findings.push_back({"a datagram to a name server outside", "refused", datagram, datagram == "ECONNREFUSED" || datagram == "EPERM"});
    const std::string tunnel = ask_for_tunnel(std::string(nobodys_name) + ":443");
    expect(findings, "the gate about a host that no policy names", "403",
           tunnel.starts_with("HTTP/1.1 403") ? "403" : tunnel.substr(0, 40));
    const int route = try_route();
    findings.push_back({"a route of its own", "refused", route == 0 ? "done" : "refused (" + word_for(route) + ")",
                        route == EPERM || route == EACCES || route == EPROTONOSUPPORT || route == EAFNOSUPPORT});
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
    if (plan.has_gate) look_at_gate(findings);
    if (plan.has_gate) look_at_proxy(findings);
    // A session goes without Landlock where this host lacks it (runner/inside/agent_process.hpp): not a fault, but worth reporting.
    if (plan.confined) findings.push_back({"Landlock", landlock_is_there, landlock_here(), true});
    look_at_modes(findings, plan);
    return findings;
}

} // namespace pi_agent

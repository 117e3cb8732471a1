// Running podman in a session's unit, and telling what is in its container.
#include "runner/sandbox_podman.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/process_handle.hpp"
#include "runner/podman_command.hpp"
#include "runner/podman_preflight.hpp"
#include "runner/process_namespace.hpp"
#include "runner/session_directory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t text_limit = 4096; // of what podman says
constexpr int podman_patience_seconds = 10;

// For pi-agent-podman, which podman itself replaces: a unit's property has room for no comma.
UniqueFd as_file(const std::vector<std::string> &arguments)
{
    std::string text;
    for (const auto &argument : arguments)
        text.append(argument).push_back('\0');
    UniqueFd file = UniqueFd::adopt(memfd_create("podman", MFD_CLOEXEC));
    if (!file || pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        throw_errno("writing podman's arguments");
    return file;
}

// Where the unit mounts a tmpfs of its own. Left to systemd, it would be made for whoever is there first.
void make_place_for_podman()
{
    const UniqueFd runtime = open_runtime_directory();
    if (mkdirat(runtime.get(), "podman", 0700) != 0 && errno != EEXIST) throw_errno(std::string("creating ") + podman_directory);
}

std::string host_name()
{
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw_errno("asking for the host's name");
    return name.data();
}

} // namespace

PodmanSandbox::PodmanSandbox(const AsRoot &root, std::string session_id, Uid user) : SystemdSandbox(root, std::move(session_id), user)
{
    require_podman(root);
    events_ = UniqueFd::adopt(epoll_create1(EPOLL_CLOEXEC));
    if (!events_) throw_errno("watching the sandbox");
    watch(SystemdSandbox::fd());
}

void PodmanSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    make_place_for_podman();
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("making a pipe");
    complaint_ = UniqueFd::adopt(ends[0]);
    const UniqueFd theirs = UniqueFd::adopt(ends[1]);
    if (fcntl(complaint_.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("making a pipe");
    const UniqueFd arguments = as_file(podman_command(plan, host_name()));
    start_unit(plan, {launcher, arguments, theirs});
}

// All of the unit that has not the host's process numbers.
std::vector<pid_t> PodmanSandbox::processes()
{
    const auto host = namespace_of("1", "pid");
    if (!host) throw_errno("reading the host's namespaces");
    std::vector<pid_t> inside;
    for (const pid_t pid : SystemdSandbox::processes()) {
        const auto its = namespace_of(std::to_string(pid), "pid");
        if (its && its != host) inside.push_back(pid);
    }
    return inside;
}

void PodmanSandbox::require_confined()
{
    const std::vector<pid_t> inside = processes();
    if (!inside.empty() && (launcher_ = open_process(inside.front()))) watch(launcher_);
    if (!defence_is_on("podman:require-confined")) return;
    for (const char *kind : {"mnt", "pid", "ipc", "uts"}) {
        const auto host = namespace_of("1", kind);
        if (!host) throw_errno("reading the host's namespaces");
        bool has_own = !inside.empty();
        for (const pid_t pid : inside)
            has_own = has_own && namespace_of(std::to_string(pid), kind).value_or(*host) != *host;
        if (!has_own)
            throw Failure(ExitStatus::unavailable, std::string("podman made no namespace of its own for the session (") + kind + ")");
    }
}

FdRef PodmanSandbox::fd() const
{
    return events_;
}

Deadline PodmanSandbox::next_look(Deadline otherwise) const
{
    const Deadline next = SystemdSandbox::next_look(otherwise);
    return patience_ ? std::min(next, *patience_) : next;
}

// A podman whose conmon was killed hears of no end, and its unit would stay.
void PodmanSandbox::process()
{
    SystemdSandbox::process();
    if (launcher_ && has_ended(launcher_)) {
        launcher_.reset();
        patience_ = in_seconds(podman_patience_seconds);
    }
    if (!patience_ || Clock::now() < *patience_) return;
    patience_.reset();
    stop();
}

void PodmanSandbox::watch(FdRef fd)
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) throw_errno("watching the sandbox");
}

std::string PodmanSandbox::explain(const SandboxResult &result)
{
    std::string text(text_limit, '\0');
    const ssize_t length = read(complaint_.get(), text.data(), text.size());
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    if (text.empty()) text = result.result + ", status " + std::to_string(result.status);
    return "podman could not prepare the sandbox (" + escape_for_display(text) + ")";
}

// podman 4.3 has no option for it. It is the host's name again.
std::vector<std::string> PodmanSandbox::own_files() const
{
    return {"hostname"};
}

std::vector<std::string> PodmanSandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = {"mnt", "ipc", "uts", "pid"};
    if (network.mode == NetworkMode::none) kinds.emplace_back("net");
    return kinds;
}

std::vector<UnitProperty> PodmanSandbox::properties(const SandboxPlan &plan, const SystemdFeatures & /*features*/) const
{
    return podman_service_properties(plan);
}

} // namespace pi_agent

// Sessions in containers: what engines share, and podman's.
#include "runner/root/method/sandbox_container.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"
#include "common/host/namespaces.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/agent_end.hpp"
#include "runner/plan/engine_commands.hpp"
#include "runner/root/method/engine_arguments.hpp"
#include "runner/root/method/preflight.hpp"
#include "runner/root/session/session_directory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t engine_text_limit = 4096; // of what the engine says
constexpr int engine_patience_seconds = 10;
constexpr int status_of_engine = 125; // of its own failures, which are no word about the agent's end (docker-run(1), podman-run(1))

} // namespace

std::string host_name()
{
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw_errno("asking for the host's name");
    return name.data();
}

ContainerSandbox::ContainerSandbox(const AsRoot &root, std::string session_id, Uid user, const char *engine)
    : SystemdSandbox(root, std::move(session_id), user), engine_(engine), events_(UniqueFd::adopt(epoll_create1(EPOLL_CLOEXEC)))
{
    if (!events_) throw_errno("watching the sandbox");
    watch(SystemdSandbox::fd());
}

UniqueFd ContainerSandbox::make_complaint()
{
    auto [own, theirs] = make_pipe(O_NONBLOCK);
    complaint_ = std::move(own);
    return std::move(theirs);
}

// All of the unit that has not the host's process numbers.
std::vector<pid_t> ContainerSandbox::processes()
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

void ContainerSandbox::require_confined()
{
    const std::vector<pid_t> inside = processes();
    if (!inside.empty() && (launcher_ = open_process(inside.front()))) watch(launcher_);
    require_account(inside);
    if (!defence_is_on((engine_ + ":require-confined").c_str())) return;
    for (const char *kind : {"mnt", "pid", "ipc", "uts"}) {
        const auto host = namespace_of("1", kind);
        if (!host) throw_errno("reading the host's namespaces");
        bool has_own = !inside.empty();
        for (const pid_t pid : inside)
            has_own = has_own && namespace_of(std::to_string(pid), kind).value_or(*host) != *host;
        if (!has_own) throw Failure(ExitStatus::unavailable, engine_ + " made no namespace of its own for the session (" + kind + ")");
    }
}

void ContainerSandbox::expect_account(const SandboxPlan &plan)
{
    account_ = account_of(plan);
    // As the engine is told (podman_command.cpp, docker_command.cpp).
    account_->no_new_privileges = defence_is_on((engine_ + ":no-new-privileges").c_str());
    account_->no_capabilities = defence_is_on((engine_ + ":no-capabilities").c_str());
}

// An engine looks names and numbers up in files of the container's root, which may be an image's: a group there with the name "991" is what
// it takes for the group 991.
void ContainerSandbox::require_account(const std::vector<pid_t> &inside) const
{
    if (!defence_is_on("engine-account")) return;
    if (!account_) throw Failure(ExitStatus::internal, engine_ + " was not told whose the session is");
    for (const pid_t pid : inside) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/status");
        const std::string status{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        if (const auto problem = account_problem(status, *account_))
            throw Failure(ExitStatus::unavailable,
                          engine_ + " gave the session other rights than those of the agent's account (" + *problem +
                              "); look for accounts and groups in its image whose names are numbers, or choose another method");
    }
}

FdRef ContainerSandbox::fd() const
{
    return events_;
}

Deadline ContainerSandbox::next_look(Deadline otherwise) const
{
    const Deadline next = SystemdSandbox::next_look(otherwise);
    return patience_ ? std::min(next, *patience_) : next;
}

// An engine that hears of no end stays, and its unit with it: a podman whose conmon was killed, a docker whose daemon hangs.
void ContainerSandbox::process()
{
    SystemdSandbox::process();
    if (launcher_ && has_ended(launcher_)) {
        launcher_.reset();
        patience_ = in_seconds(engine_patience_seconds);
    }
    if (!patience_ || Clock::now() < *patience_) return;
    patience_.reset();
    gave_up_ = true;
    stop();
}

SandboxResult ContainerSandbox::result()
{
    SandboxResult result = SystemdSandbox::result();
    if (result.code == CLD_EXITED && result.status == status_of_engine) result.code = 0;
    return gave_up_ ? without_own_kill(std::move(result)) : result;
}

void ContainerSandbox::watch(FdRef fd)
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) throw_errno("watching the sandbox");
}

void ContainerSandbox::forget(FdRef fd)
{
    if (epoll_ctl(events_.get(), EPOLL_CTL_DEL, fd.get(), nullptr) != 0) throw_errno("watching the sandbox");
}

std::string ContainerSandbox::explain(const SandboxResult &result)
{
    std::string text(engine_text_limit, '\0');
    const ssize_t length = read(complaint_.get(), text.data(), text.size());
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    if (text.empty()) text = result.result + ", status " + std::to_string(result.status);
    return engine_ + " could not prepare the sandbox (" + escape_for_display(text) + ")";
}

std::vector<std::string> ContainerSandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = {"mnt", "ipc", "uts", "pid"};
    if (network.mode == NetworkMode::none) kinds.emplace_back("net");
    return kinds;
}

namespace {

// Where the unit mounts a tmpfs of its own. Left to systemd, it would be made for whoever is there first.
void make_place_for_podman()
{
    const UniqueFd runtime = open_runtime_directory();
    if (mkdirat(runtime.get(), "podman", 0700) != 0 && errno != EEXIST) throw_errno(std::string("creating ") + podman_directory);
}

} // namespace

PodmanSandbox::PodmanSandbox(const AsRoot &root, std::string session_id, Uid user)
    : ContainerSandbox(root, std::move(session_id), user, "podman")
{
    require_podman(root);
}

void PodmanSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    make_place_for_podman();
    expect_account(plan);
    const UniqueFd complaint = make_complaint();
    const UniqueFd arguments = write_arguments("the engine", podman_command(plan, host_name()));
    start_unit(plan, {launcher, arguments, complaint});
}

// podman 4.3 has no option for it. It is the host's name again.
std::vector<std::string> PodmanSandbox::own_files() const
{
    return {"hostname"};
}

std::vector<UnitProperty> PodmanSandbox::properties(const SandboxPlan &plan, const SystemdFeatures & /*features*/) const
{
    return podman_service_properties(plan);
}

} // namespace pi_agent

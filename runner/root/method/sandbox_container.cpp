// Sessions in containers: what engines share, and podman's.
#include "runner/root/method/sandbox_systemd.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"
#include "common/host/namespaces.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/agent_end.hpp"
#include "runner/plan/engine_commands.hpp"
#include "runner/root/method/engine_arguments.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/session/session_directory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr int engine_patience_seconds = 10;
constexpr int status_of_engine = 125; // of its own failures, which are no word about the agent's end (docker-run(1), podman-run(1))

} // namespace

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
    if (defence_is_on((engine() + ":require-confined").c_str())) require_own_namespaces(inside, {"mnt", "pid", "ipc", "uts"});
}

void ContainerSandbox::prepare(const SandboxPlan &plan)
{
    // Where the unit mounts a tmpfs of its own. Left to systemd, it would be made for whoever is there first.
    const UniqueFd runtime = open_runtime_directory();
    if (mkdirat(runtime.get(), engine().c_str(), 0700) != 0 && errno != EEXIST) throw_errno("creating /run/pi-agent/" + engine());
    account_ = account_of(plan);
    // As the engine is told (podman_command.cpp, docker_command.cpp).
    account_->no_new_privileges = defence_is_on((engine() + ":no-new-privileges").c_str());
    account_->no_capabilities = defence_is_on((engine() + ":no-capabilities").c_str());
}

// An engine looks names and numbers up in files of the container's root, which may be an image's: a group there with the name "991" is what
// it takes for the group 991.
void ContainerSandbox::require_account(const std::vector<pid_t> &inside) const
{
    if (!defence_is_on("engine-account")) return;
    if (!account_) throw Failure(ExitStatus::internal, engine() + " was not told whose the session is");
    for (const pid_t pid : inside) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/status");
        const std::string status{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        if (const auto problem = account_problem(status, *account_))
            throw Failure(ExitStatus::unavailable,
                          engine() + " gave the session other rights than those of the agent's account (" + *problem +
                              "); look for accounts and groups in its image whose names are numbers, or choose another method");
    }
}

std::string ContainerSandbox::host_name()
{
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw_errno("asking for the host's name");
    return name.data();
}

void ContainerSandbox::start_engine(const SandboxPlan &plan, FdRef input, const std::vector<std::string> &command)
{
    const UniqueFd complaint = complaint_.open();
    const UniqueFd arguments = write_arguments("the engine", command);
    start_unit(plan, {input, arguments, complaint});
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

std::string ContainerSandbox::explain(const SandboxResult &result)
{
    const std::string &text = complaint_.text();
    return engine() + " could not prepare the sandbox (" +
           escape_for_display(text.empty() ? result.result + ", status " + std::to_string(result.status) : text) + ")";
}

PodmanSandbox::PodmanSandbox(const AsRoot &root, std::string session_id, Uid user)
    : ContainerSandbox(root, SandboxMethod::podman, std::move(session_id), user)
{
    require_method_programs(SandboxMethod::podman);
}

void PodmanSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    prepare(plan);
    start_engine(plan, launcher, podman_command(plan, host_name()));
}

} // namespace pi_agent

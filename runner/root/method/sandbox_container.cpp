// Sessions in containers: what engines share, podman's, and docker's with the door at which its launcher knocks.
#include "runner/root/method/sandbox_methods.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/docker_daemon.hpp"
#include "runner/root/method/engine_arguments.hpp"
#include "runner/root/session/record.hpp"

#include <csignal>
#include <cstring>
#include <fstream>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace pi_agent {

namespace {

constexpr int engine_patience_seconds = 10;
constexpr int status_of_engine = 125; // when the engine itself fails; says nothing about the agent's end (docker-run(1), podman-run(1))
constexpr int sweep_patience_seconds = 2;

// Whoever may talk to the daemon has root's power.
void require_no_power_over_docker(const SandboxPlan &plan, gid_t group)
{
    if (group == 0 || !defence_is_on("docker:no-group")) return;
    const auto is_it = [&](Gid one) { return one.value() == group; };
    if (plan.agent_group.value() != group && std::none_of(plan.groups.begin(), plan.groups.end(), is_it) &&
        std::find(plan.account_groups.begin(), plan.account_groups.end(), group) == plan.account_groups.end())
        return;
    throw Failure(ExitStatus::denied, "denied: the agent's account is in the group docker (" + std::to_string(group) +
                                          "), whose members are root on this host; ask the administrator to take it out of that group");
}

} // namespace

// All processes of the unit that are not in the host's PID namespace.
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
    SystemdSandbox::require_confined();
    const std::vector<pid_t> inside = processes();
    if (!inside.empty() && (launcher_ = open_process(inside.front()))) watch(launcher_);
    require_account(inside);
    if (defence_is_on((engine() + ":require-confined").c_str())) require_own_namespaces(inside, {"mnt", "pid", "ipc", "uts"});
}

void ContainerSandbox::prepare(const SandboxPlan &plan)
{
    // Makes the place where the unit mounts a tmpfs of its own. If systemd made it, that would be for whoever is there first.
    const UniqueFd runtime = open_runtime_directory();
    if (mkdirat(runtime.get(), engine().c_str(), 0700) != 0 && errno != EEXIST) throw_errno("creating /run/pi-agent/" + engine());
    account_ = account_of(plan);
    // The same as the engine is told (runner/plan/engine_commands.cpp).
    account_->no_new_privileges = defence_is_on((engine() + ":no-new-privileges").c_str());
    account_->no_capabilities = defence_is_on((engine() + ":no-capabilities").c_str());
}

// An engine looks names and numbers up in files of the container's root, which may come from an image: it takes a group there with the name
// "991" for the group 991.
void ContainerSandbox::require_account(const std::vector<pid_t> &inside) const
{
    if (!defence_is_on("engine-account")) return;
    if (!account_) throw Failure(ExitStatus::internal, engine() + " was not told whose the session is");
    for (const pid_t pid : inside) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/status");
        const std::string status{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        if (const auto problem = account_problem(status, *account_))
            throw Failure(FailureKind::sandbox_method,
                          engine() + " gave the session other rights than the agent's account has (" + *problem +
                              "); look for accounts and groups in its image whose names are numbers, or choose another method");
    }
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

// An engine that hears of no end stays, and its unit with it: a podman whose conmon was killed, or a docker whose daemon hangs.
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

PodmanSandbox::PodmanSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy)
    : ContainerSandbox(root, SandboxMethod::podman, std::move(session_id), user), policy_(policy), image_(require_podman(root, policy))
{
}

void PodmanSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    prepare(plan);
    std::optional<PodmanImage> image = image_;
    if (image) {
        image->tree = lay_over_links(show_tree(plan), plan.root_directory, *image, policy_);
        // podman's own file takes that place, as it does without an image (traits_of() in runner/root/method/sandbox.cpp).
        std::erase_if(image->tree, [](const Bind &one) { return one.target == "/etc/hostname"; });
    }
    start_engine(plan, launcher, podman_command(plan, host_name(), image));
}

LaunchDoor::LaunchDoor(const std::string &session, FdRef launcher) : path_(session + door_inside)
{
    const std::string directory = path_.substr(0, path_.rfind('/'));
    if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) throw_errno("making the launcher's door");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) throw Failure(ExitStatus::internal, "the path of the launcher's door is too long");
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    listener_ = UniqueFd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    launcher_ = duplicate(launcher);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    if (!listener_ || !launcher_ || bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 ||
        chmod(directory.c_str(), 0755) != 0 || chmod(path_.c_str(), 0666) != 0 || listen(listener_.get(), 1) != 0)
        throw_errno("making the launcher's door");
}

void LaunchDoor::close()
{
    if (!listener_) return;
    if (!defence_is_on("docker:door-closed")) return static_cast<void>(listener_.release());
    unlink(path_.c_str()); // best_effort: nobody listens there any more, and it goes with the session's directory
    listener_.reset();
}

UniqueFd LaunchDoor::next_guest()
{
    UniqueFd guest = UniqueFd::adopt(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) throw_errno("answering the launcher");
    return guest;
}

void LaunchDoor::answer(FdRef guest, Uid agent, const std::vector<pid_t> &inside)
{
    close();
    ucred who{};
    socklen_t length = sizeof who;
    if (getsockopt(guest.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) throw_errno("asking who the launcher is");
    const bool is_launcher = who.uid == agent.value() && std::find(inside.begin(), inside.end(), who.pid) != inside.end();
    if (!is_launcher && defence_is_on("docker:door-guest"))
        throw Failure(FailureKind::sandbox_method,
                      "docker started the launcher outside the session's unit, or as another account (process " + std::to_string(who.pid) +
                          ", uid " + std::to_string(who.uid) + ")");
    send_packet(guest, "launch", {launcher_.get()}, in_seconds(1));
    launcher_.reset();
}

DockerSandbox::DockerSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy)
    : ContainerSandbox(root, SandboxMethod::docker, std::move(session_id), user), host_(require_docker(root, policy))
{
}

void DockerSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    ContainerSandbox::leave_callers_group(meanwhile);
    if (defence_is_on("docker:sweep")) sweep_containers();
}

// Nobody else removes a container whose client was killed while the daemon made it, when the session's cleanup came before it.
void DockerSandbox::sweep_containers()
{
    const std::string prefix = "/" + container_name("");
    try { // best_effort: it keeps nobody, and the next start tries again
        const Deadline deadline = in_seconds(sweep_patience_seconds);
        for (const std::string &name : ended_containers(root(), deadline)) {
            const std::string id = name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : "";
            if (!is_session_id(id) || session_exists(root(), id) || may_live(id)) continue;
            remove_ended_container(root(), container_name(id), deadline);
            record_problem(id, "a container without a session was removed");
        }
    } catch (const Failure &failure) {
        record_problem(id(), "containers without a session cannot be removed: ", failure.what());
    }
}

void DockerSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    require_no_power_over_docker(plan, host_.group);
    prepare(plan);
    agent_ = plan.agent;
    const std::string session = plan.root_directory.substr(0, plan.root_directory.rfind('/'));
    if (mkdir((session + "/" + docker_mark).c_str(), 0700) != 0) throw_errno("marking the session as one of docker's");
    door_ = std::make_unique<LaunchDoor>(session, launcher);
    watch(door_->fd());
    const DockerContainer container{host_.image, place_in_hierarchy(*group()), host_name(), show_tree(plan)};
    start_engine(plan, FdRef(-1), docker_command(plan, container));
}

// The process that knocked may be gone by now, and nobody is let in any more.
void DockerSandbox::stop()
{
    if (door_) forget(door_->fd());
    door_.reset();
    ContainerSandbox::stop();
}

void DockerSandbox::process()
{
    ContainerSandbox::process();
    if (!door_ || !wait_for_input(door_->fd(), Clock::now())) return;
    const UniqueFd guest = door_->next_guest();
    if (!guest) return;                                        // the next one that knocks still finds the door
    const std::unique_ptr<LaunchDoor> door = std::move(door_); // if answer() throws, stop() must not forget the door again
    forget(door->fd());
    door->answer(guest, *agent_, processes());
}

// docker makes its groups by itself: in each hierarchy that holds a limit the container's must be below the unit's.
void DockerSandbox::require_limits(const LimitsPolicy &limits)
{
    SystemdSandbox::require_limits(limits);
    const ControlGroup unit = *group();
    if (unit.is_unified) return; // processes() found it there
    for (const char *controller : {"memory", "pids", "cpu"}) {
        // A limit of the policy without a controller on this host was refused before.
        if (!is_mounted_as(std::string(control_groups) + "/" + controller, CGROUP_SUPER_MAGIC)) continue;
        const std::vector<pid_t> held = processes_below(directory_of(unit, controller));
        for (const pid_t pid : processes())
            if (std::find(held.begin(), held.end(), pid) == held.end())
                throw Failure(FailureKind::sandbox_method, std::string("docker put the container outside the session's control group (") +
                                                               controller + "), whose limits would not hold it");
    }
}

} // namespace pi_agent

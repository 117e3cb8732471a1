// sandbox.method podman and docker: root's engine makes one container around the session's view inside of the session's transient unit. The
// container's root directory is that view (podman), or the root directory of an image that the policy names, with the view over it.
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/session_directory.hpp"

#include <csignal>
#include <fstream>
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

// Hands the launcher its control socket, because docker passes no descriptor on: a socket in the session's own /run at which the launcher
// knocks once. It is gone before anything is handed in, so the agent does not find it.
class LaunchDoor {
public:
    // `session`: its directory, in which only root can make names. `launcher`: the socket to hand out; copied.
    LaunchDoor(const std::string &session, FdRef launcher) : path_(session + door_inside)
    {
        const std::string directory = path_.substr(0, path_.rfind('/'));
        if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) throw_errno("making the launcher's door");
        sockaddr_un address{AF_UNIX, {}};
        if (path_.copy(address.sun_path, sizeof address.sun_path - 1) != path_.size())
            throw Failure(ExitStatus::internal, "the path of the launcher's door is too long");
        listener_ = UniqueFd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        launcher_ = duplicate(launcher);
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
        if (!listener_ || !launcher_ || bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 ||
            chmod(directory.c_str(), 0755) != 0 || chmod(path_.c_str(), 0666) != 0 || listen(listener_.get(), 1) != 0)
            throw_errno("making the launcher's door");
    }

    LaunchDoor(const LaunchDoor &) = delete;
    LaunchDoor &operator=(const LaunchDoor &) = delete;
    ~LaunchDoor() { close(); }

    // Readable when somebody knocks.
    [[nodiscard]] FdRef fd() const { return listener_; }

    // The process that knocks; none where it is gone again, and the door stays.
    [[nodiscard]] UniqueFd next_guest()
    {
        UniqueFd guest = UniqueFd::adopt(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!guest && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) throw_errno("answering the launcher");
        return guest;
    }

    // The first that knocks is the only one: after that there is no door. It must be a process of the agent's account that is among
    // `inside`. Throws Failure(unavailable) when it is not.
    void answer(const std::string &engine, FdRef guest, Uid agent, const std::vector<pid_t> &inside)
    {
        close();
        ucred who{};
        socklen_t length = sizeof who;
        if (getsockopt(guest.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) throw_errno("asking who the launcher is");
        const bool is_launcher = who.uid == agent.value() && std::find(inside.begin(), inside.end(), who.pid) != inside.end();
        if (!is_launcher && defence_is_on("door-guest"))
            throw Failure(FailureKind::sandbox_method,
                          engine + " started the launcher outside the session's unit, or as another account (process " +
                              std::to_string(who.pid) + ", uid " + std::to_string(who.uid) + ")");
        send_packet(guest, "launch", {launcher_.get()}, in_seconds(1));
        launcher_.reset();
    }

private:
    void close()
    {
        if (!listener_) return;
        if (!defence_is_on("door-closed")) return static_cast<void>(listener_.release());
        unlink(path_.c_str()); // best_effort: nobody listens there any more, and it goes with the session's directory
        listener_.reset();
    }

    std::string path_;
    UniqueFd listener_;
    UniqueFd launcher_;
};

// Unit, limits, lifetime and record are as in the method systemd.
class EngineSandbox final : public SystemdSandbox {
public:
    EngineSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy)
        : SystemdSandbox(root, policy.method, std::move(session_id), user), policy_(policy), host_(require_engine(root, policy))
    {
    }

    void leave_callers_group(const std::function<void()> &meanwhile) override
    {
        SystemdSandbox::leave_callers_group(meanwhile);
        if (is_docker() && defence_is_on("docker:sweep")) sweep_containers();
    }

    void start(const SandboxPlan &plan, FdRef launcher) override
    {
        require_no_power_over_docker(plan, host_.docker_group);
        // Makes the place where the unit mounts a tmpfs of its own. If systemd made it, that would be for whoever is there first.
        const UniqueFd runtime = open_runtime_directory();
        if (mkdirat(runtime.get(), engine().c_str(), 0700) != 0 && errno != EEXIST) throw_errno("creating /run/pi-agent/" + engine());
        account_ = account_of(plan);
        // The same as the engine is told (runner/plan/engine_commands.cpp).
        account_->no_new_privileges = defence_is_on((engine() + ":no-new-privileges").c_str());
        account_->no_capabilities = defence_is_on((engine() + ":no-capabilities").c_str());
        const std::string session = plan.root_directory.substr(0, plan.root_directory.rfind('/'));
        if (is_docker() && mkdir((session + "/" + docker_mark).c_str(), 0700) != 0) throw_errno("marking the session as one of docker's");
        door_ = std::make_unique<LaunchDoor>(session, launcher);
        watch(door_->fd());
        const EngineContainer container{host_name(), host_.image, tree_of(plan), place_in_hierarchy(*group())};
        const UniqueFd complaint = complaint_.open();
        const UniqueFd arguments =
            write_arguments("the engine", is_docker() ? docker_command(plan, container) : podman_command(plan, container));
        start_unit(plan, {FdRef(-1), arguments, complaint});
    }

    // The process that knocked may be gone by now, and nobody is let in any more.
    void stop() override
    {
        if (door_) forget(door_->fd());
        door_.reset();
        SystemdSandbox::stop();
    }

    SandboxResult result() override
    {
        SandboxResult result = SystemdSandbox::result();
        if (result.code == CLD_EXITED && result.status == status_of_engine) result.code = 0;
        return gave_up_ ? without_own_kill(std::move(result)) : result;
    }

    // An engine that hears of no end stays, and its unit with it: a podman whose conmon was killed, or a docker whose daemon hangs.
    void process() override
    {
        SystemdSandbox::process();
        if (launcher_ && has_ended(launcher_)) {
            launcher_.reset();
            due_ = in_seconds(engine_patience_seconds);
        }
        if (Clock::now() >= due_) {
            due_ = Deadline::max();
            gave_up_ = true;
            stop();
        }
        if (!door_ || !wait_for_input(door_->fd(), Clock::now())) return;
        const UniqueFd guest = door_->next_guest();
        if (!guest) return;                                        // the next one that knocks still finds the door
        const std::unique_ptr<LaunchDoor> door = std::move(door_); // if answer() throws, stop() must not forget the door again
        forget(door->fd());
        door->answer(engine(), guest, account_->user, processes());
    }

    // All processes of the unit that are not in the host's PID namespace.
    std::vector<pid_t> processes() override
    {
        const auto host = namespace_of("1", "pid");
        if (!host) throw_errno("reading the host's namespaces");
        std::vector<pid_t> inside = SystemdSandbox::processes();
        std::erase_if(inside, [&](pid_t pid) { return namespace_of(std::to_string(pid), "pid").value_or(*host) == *host; });
        return inside;
    }

protected:
    void require_confined() override
    {
        SystemdSandbox::require_confined();
        const std::vector<pid_t> inside = processes();
        if (!inside.empty() && (launcher_ = open_process(inside.front()))) watch(launcher_);
        require_account(inside);
        if (is_docker()) require_in_unit(inside);
    }

private:
    [[nodiscard]] bool is_docker() const { return method() == SandboxMethod::docker; }
    [[nodiscard]] std::string engine() const { return to_string(method()); }

    // Nobody else removes a container whose client was killed while the daemon made it, when the session's cleanup came before it.
    void sweep_containers()
    {
        const std::string prefix = "/" + container_name("");
        const auto sweep = [&] { // best_effort: it keeps nobody, and the next start tries again
            const Deadline deadline = in_seconds(sweep_patience_seconds);
            for (const std::string &name : ended_containers(root(), deadline)) {
                const std::string id = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
                if (!is_session_id(id) || session_exists(root(), id) || may_live(id)) continue;
                remove_ended_container(root(), container_name(id), deadline);
                record_problem(id, "a container without a session was removed");
            }
        };
        attempt_recorded(id(), sweep, "containers without a session cannot be removed: ");
    }

    // What of the plan's tree lies over the image's.
    std::vector<Bind> tree_of(const SandboxPlan &plan) const
    {
        if (host_.image.id.empty()) return {};
        std::vector<Bind> tree = lay_over_links(show_tree(plan), plan.root_directory, host_, policy_);
        // podman's own file takes that place, as it does without an image (row_of() in runner/root/method/sandbox.cpp).
        if (!is_docker()) std::erase_if(tree, [](const Bind &one) { return one.target == "/etc/hostname"; });
        return tree;
    }

    // An engine looks names and numbers up in files of the container's root, which may come from an image: it takes a group there with the
    // name "991" for the group 991.
    void require_account(const std::vector<pid_t> &inside) const
    {
        if (!defence_is_on("engine-account")) return;
        for (const pid_t pid : inside) {
            std::ifstream file("/proc/" + std::to_string(pid) + "/status");
            const std::string status{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
            if (const auto problem = account_problem(status, account_.value()))
                throw Failure(FailureKind::sandbox_method,
                              engine() + " gave the session other rights than the agent's account has (" + *problem +
                                  "); look for accounts and groups in its image whose names are numbers, or choose another method");
        }
    }

    // docker makes its groups by itself: in each hierarchy of version 1 that holds a limit the container's must be below the unit's.
    void require_in_unit(const std::vector<pid_t> &inside) const
    {
        const ControlGroup unit = *group();
        if (unit.is_unified) return;                              // processes() found it there
        for (const auto &controller : host_controllers().names) { // without one, no limit of the policy's needs it
            const std::vector<pid_t> held = processes_in({directory_of(unit, controller), false});
            for (const pid_t pid : inside)
                if (std::find(held.begin(), held.end(), pid) == held.end())
                    throw Failure(FailureKind::sandbox_method, "docker put the container outside the session's control group (" +
                                                                   controller + "), whose limits would not hold it");
        }
    }

    const SandboxPolicy policy_;
    const EngineHost host_;
    std::optional<ExpectedAccount> account_; // as which the engine must run the launcher
    std::unique_ptr<LaunchDoor> door_;       // until the launcher has knocked
    UniqueFd launcher_;                      // once it is there
    bool gave_up_ = false;                   // the engine outlived the launcher, and was ended
};

} // namespace

std::unique_ptr<Sandbox> make_engine_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user)
{
    return std::make_unique<EngineSandbox>(root, session_id, user, policy);
}

} // namespace pi_agent

// One container in the session's unit, in which nothing of its image runs.
#include "runner/docker_command.hpp"

#include "common/build_settings.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "runner/docker_daemon.hpp"
#include "runner/engine_arguments.hpp"
#include "runner/launch_door.hpp"
#include "runner/limits.hpp"

#include <initializer_list>

namespace pi_agent {

namespace {

constexpr const char *shared_memory_bytes = "1073741824"; // it counts against the session's memory, too

// Places of the root that only a session's own mounts fill, as under bwrap.
constexpr const char *homes[] = {"/home", "/root", "/run/user"};

class Arguments {
public:
    void add(std::initializer_list<std::string> more) { list_.insert(list_.end(), more); }
    // Under `other` where a test takes the defence out.
    void add_if(const char *defence, const std::string &argument, const std::string &other = "")
    {
        const bool is_on = defence_is_on((std::string("docker:") + defence).c_str());
        if (is_on || !other.empty()) list_.push_back(is_on ? argument : other);
    }
    [[nodiscard]] std::vector<std::string> take() { return std::move(list_); }

private:
    std::vector<std::string> list_;
};

// In a list of options docker splits at commas and knows quotes.
const std::string &safe(const std::string &path)
{
    if (!is_property_safe(path)) throw Failure(ExitStatus::internal, "docker would be told of " + escape_for_display(path));
    return path;
}

std::string mount_of(const std::string &source, const std::string &target, bool read_only)
{
    const bool is_read_only = read_only && defence_is_on("docker:read-only");
    return "--mount=type=bind,src=" + safe(source) + ",dst=" + safe(target) + ",ro=" + (is_read_only ? "true" : "false") +
           ",bind-propagation=rprivate";
}

// What the daemon's settings could choose otherwise is said here.
void add_engine(const SandboxPlan &plan, const DockerContainer &container, Arguments &arguments)
{
    arguments.add({"docker", std::string("--host=unix://") + docker_socket, std::string("--config=") + docker_directory});
    arguments.add({"run", "--rm", "--pull=never", "--name=" + container_name(plan.session_id), "--runtime=runc", "--init=false",
                   "--log-driver=none", "--sig-proxy=false", "--attach=stderr", "--no-healthcheck"});
    // In the unit: its limits and its end are the container's.
    arguments.add({"--cgroup-parent=" + container.control_group});
}

void add_confinement(const SandboxPlan &plan, Arguments &arguments)
{
    arguments.add_if("no-capabilities", "--cap-drop=ALL", "--cap-add=ALL");
    arguments.add_if("no-new-privileges", "--security-opt=no-new-privileges");
    arguments.add({"--security-opt=seccomp=unconfined"}); // pi-agent-exec installs the list that all methods have, and its own
    arguments.add_if("own-ipc", "--ipc=private", "--ipc=host");
    arguments.add_if("read-only", "--read-only");
    arguments.add({"--userns=host"}); // the mounts are id-mapped already
    const bool has_none = plan.network.mode == NetworkMode::none && defence_is_on("docker:own-network");
    arguments.add({has_none ? "--network=none" : "--network=host"}); // filters are at the unit's control group
}

void add_account(const SandboxPlan &plan, Arguments &arguments)
{
    arguments.add({"--user=" + std::to_string(plan.agent.value()) + ":" + std::to_string(plan.agent_group.value())});
    for (const gid_t group : plan.account_groups)
        arguments.add({"--group-add=" + std::to_string(group)});
    for (const Gid group : plan.groups)
        arguments.add({"--group-add=" + std::to_string(group.value())});
}

// docker sorts them: what lies in another's place comes after it. What it would mount by itself at one of these places it leaves out.
void add_view(const SandboxPlan &plan, const DockerContainer &container, Arguments &arguments)
{
    for (const char *home : homes)
        arguments.add(
            {std::string("--mount=type=tmpfs,dst=") + home + (defence_is_on("docker:read-only") ? ",ro=true" : "") + ",tmpfs-mode=0755"});
    // docker's own would be writable. With one that is named, what else it mounts there is left out; the session's terminals come onto
    // /dev/pts late.
    arguments.add({std::string("--tmpfs=/dev:") + (defence_is_on("docker:read-only") ? "ro" : "rw") + ",dev,nosuid,noexec,mode=0755"});
    arguments.add({"--mount=type=tmpfs,dst=/dev/pts,ro=true,tmpfs-mode=0755",
                   std::string("--mount=type=tmpfs,dst=/dev/shm,tmpfs-mode=1777,tmpfs-size=") + shared_memory_bytes});
    for (const Bind &one : container.tree)
        arguments.add({mount_of(one.source, one.target, one.read_only)});
    for (const Bind &one : plan.binds) {
        arguments.add({mount_of(one.source, one.target, one.read_only)});
        // Else docker shows the host's.
        if (one.target == "/sys") arguments.add({mount_of(one.source + "/fs/cgroup", "/sys/fs/cgroup", true)});
    }
}

} // namespace

std::string container_name(const std::string &session_id)
{
    return "pi-agent-" + session_id;
}

std::vector<std::string> docker_command(const SandboxPlan &plan, const DockerContainer &container)
{
    Arguments arguments;
    add_engine(plan, container, arguments);
    add_confinement(plan, arguments);
    add_account(plan, arguments);
    // As the unit has it (setrlimit(2)); a container has the limits of the daemon.
    arguments.add({"--ulimit=core=0:0", "--workdir=/", "--oom-score-adj=" + std::to_string(agent_oom_score),
                   host_name_argument("docker", container.host_name)});
    add_view(plan, container, arguments);
    arguments.add({std::string("--entrypoint=") + build::exec_path, safe(container.image), door_inside});
    return arguments.take();
}

} // namespace pi_agent

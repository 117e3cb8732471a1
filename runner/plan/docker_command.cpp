// One container in the session's unit, in which nothing of its image runs.
#include "runner/plan/docker_command.hpp"

#include "common/base/build_settings.hpp"
#include "runner/plan/engine_options.hpp"
#include "runner/plan/limits.hpp"

namespace pi_agent {

namespace {

// What the daemon's settings could choose otherwise is said here.
void add_engine(const SandboxPlan &plan, const DockerContainer &container, EngineOptions &options)
{
    options.add({"docker", std::string("--host=unix://") + docker_socket, std::string("--config=") + docker_directory});
    options.add({"run", "--rm", "--pull=never", "--name=" + container_name(plan.session_id), "--runtime=runc", "--init=false",
                 "--log-driver=none", "--sig-proxy=false", "--attach=stderr", "--no-healthcheck"});
    // In the unit: its limits and its end are the container's.
    options.add({"--cgroup-parent=" + container.control_group});
}

void add_confinement(const SandboxPlan &plan, EngineOptions &options)
{
    options.add_if("no-capabilities", "--cap-drop=ALL", "--cap-add=ALL");
    options.add_if("no-new-privileges", "--security-opt=no-new-privileges");
    options.add({"--security-opt=seccomp=unconfined"}); // pi-agent-exec installs the list that all methods have, and its own
    options.add_if("own-ipc", "--ipc=private", "--ipc=host");
    options.add_if("read-only", "--read-only");
    options.add({"--userns=host"}); // the mounts are id-mapped already
    const bool has_none = plan.network.mode == NetworkMode::none && options.is_on("own-network");
    options.add({has_none ? "--network=none" : "--network=host"}); // filters are at the unit's control group
}

// docker sorts them: what lies in another's place comes after it. What it would mount by itself at one of these places it leaves out.
void add_view(const SandboxPlan &plan, const DockerContainer &container, EngineOptions &options)
{
    for (const char *home : engine_homes)
        options.add({std::string("--mount=type=tmpfs,dst=") + home + (options.is_on("read-only") ? ",ro=true" : "") + ",tmpfs-mode=0755"});
    // docker's own would be writable. With one that is named, what else it mounts there is left out; the session's terminals come onto
    // /dev/pts late.
    options.add({std::string("--tmpfs=/dev:") + (options.is_on("read-only") ? "ro" : "rw") + ",dev,nosuid,noexec,mode=0755"});
    options.add({"--mount=type=tmpfs,dst=/dev/pts,ro=true,tmpfs-mode=0755",
                 std::string("--mount=type=tmpfs,dst=/dev/shm,tmpfs-mode=1777,tmpfs-size=") + shared_memory_bytes});
    for (const Bind &one : container.tree)
        options.add_bind(one.source, one.target, one.read_only);
    for (const Bind &one : plan.binds) {
        options.add_bind(one.source, one.target, one.read_only);
        // Else docker shows the host's.
        if (one.target == "/sys") options.add_bind(one.source + "/fs/cgroup", "/sys/fs/cgroup", true);
    }
}

} // namespace

std::string container_name(const std::string &session_id)
{
    return "pi-agent-" + session_id;
}

std::vector<std::string> docker_command(const SandboxPlan &plan, const DockerContainer &container)
{
    EngineOptions options("docker");
    add_engine(plan, container, options);
    add_confinement(plan, options);
    options.add_account(plan);
    // As the unit has it (setrlimit(2)); a container has the limits of the daemon.
    options.add({"--ulimit=core=0:0", "--workdir=/", "--oom-score-adj=" + std::to_string(agent_oom_score),
                 host_name_argument("docker", container.host_name)});
    add_view(plan, container, options);
    options.add({std::string("--entrypoint=") + build::exec_path, options.safe(container.image), door_inside});
    return options.take();
}

} // namespace pi_agent

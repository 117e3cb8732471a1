// The command lines of the container engines.
#include "runner/plan/engine_commands.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/limits.hpp"

namespace pi_agent {

void EngineOptions::add_if(const char *defence, const std::string &option, const std::string &other)
{
    const bool has_it = is_on(defence);
    if (has_it || !other.empty()) list_.push_back(has_it ? option : other);
}

void EngineOptions::add_account(const SandboxPlan &plan)
{
    list_.push_back("--user=" + std::to_string(plan.agent.value()) + ":" + std::to_string(plan.agent_group.value()));
    for (const gid_t group : plan.account_groups)
        list_.push_back("--group-add=" + std::to_string(group));
    for (const Gid group : plan.groups)
        list_.push_back("--group-add=" + std::to_string(group.value()));
}

void EngineOptions::add_bind(const std::string &source, const std::string &target, bool read_only)
{
    const bool is_read_only = read_only && is_on("read-only");
    list_.push_back("--mount=type=bind,src=" + safe(source) + ",dst=" + safe(target) + ",ro=" + (is_read_only ? "true" : "false") +
                    ",bind-propagation=rprivate");
}

bool EngineOptions::is_on(const char *defence) const
{
    return defence_is_on((engine_ + ":" + defence).c_str());
}

const std::string &EngineOptions::safe(const std::string &path) const
{
    if (!is_property_safe(path)) throw Failure(ExitStatus::internal, engine_ + " would be told of " + escape_for_display(path));
    return path;
}

std::string host_name_argument(const std::string &engine, const std::string &name)
{
    if (name.empty() || !is_property_safe(name))
        throw Failure(ExitStatus::unavailable, "the name of this host (" + escape_for_display(name) + ") has characters that " + engine +
                                                   " takes for no name's; give the host another one (hostnamectl set-hostname), or "
                                                   "choose another method");
    return "--hostname=" + name;
}

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

namespace {

// Everything below a directory that goes with the unit's mount table, and no file of settings but what is said here: those of the host may
// give every container mounts, variables and devices.
void add_engine(EngineOptions &options)
{
    const std::string top = podman_directory;
    options.add({"podman", "--root=" + top + "/root", "--runroot=" + top + "/run", "--tmpdir=" + top + "/tmp",
                 "--network-config-dir=" + top + "/networks", "--storage-driver=vfs", "--events-backend=none", "--cgroup-manager=cgroupfs",
                 "--log-level=error"});
    options.add({std::string("--runtime=") + build::crun_path, std::string("--conmon=") + build::conmon_path, "--hooks-dir=" + top});
    options.add_if("no-default-mounts", "--default-mounts-file=/dev/null"); // the host's mounts.conf is for containers
}

void add_confinement(EngineOptions &options)
{
    options.add_if("no-capabilities", "--cap-drop=ALL", "--cap-add=ALL");
    options.add_if("no-new-privileges", "--security-opt=no-new-privileges");
    options.add({"--security-opt=seccomp=unconfined"}); // pi-agent-exec installs the list that all methods have, and its own
    options.add_if("own-processes", "--pid=private", "--pid=host");
    options.add_if("own-ipc", "--ipc=private", "--ipc=host");
    options.add_if("read-only", "--read-only");
    options.add({"--read-only-tmpfs=false"}); // the view has its own
    // The unit's, which has what the policy says: a namespace of its own, or filters at its control group.
    options.add({"--network=host", "--dns=none"});
}

// podman sorts them: what lies in another's place comes after it. What it would mount by itself at one of these places it leaves out.
void add_view(const SandboxPlan &plan, EngineOptions &options)
{
    for (const char *home : engine_homes)
        options.add({std::string("--mount=type=tmpfs,dst=") + home + (options.is_on("read-only") ? ",ro=true" : "") +
                     ",tmpfs-mode=0755,notmpcopyup"});
    // podman 4.3 would leave it writable. With one that is named, what else it mounts there is left out; the session's own terminals come
    // onto /dev/pts late.
    options.add(
        {std::string("--mount=type=tmpfs,dst=/dev") + (options.is_on("read-only") ? ",ro=true" : "") + ",dev,nosuid,tmpfs-mode=0755"});
    options.add({"--mount=type=devpts,dst=/dev/pts"});
    options.add({std::string("--mount=type=tmpfs,dst=/dev/shm,tmpfs-mode=1777,notmpcopyup,tmpfs-size=") + shared_memory_bytes});
    for (const Bind &one : plan.binds) {
        options.add_bind(one.source, one.target, one.read_only);
        // Else podman shows the host's, or the one of the unit.
        if (one.target == "/sys") options.add_bind(one.source + "/fs/cgroup", "/sys/fs/cgroup", true);
    }
}

} // namespace

std::vector<std::string> podman_command(const SandboxPlan &plan, const std::string &host_name)
{
    EngineOptions options("podman");
    add_engine(options);
    // The unit is the container's control group, and its limits are the unit's.
    options.add({"run", "--pull=never", "--cgroups=disabled", "--log-driver=none", "--systemd=false", "--sdnotify=ignore",
                 "--sig-proxy=false", "--attach=stderr", "--preserve-fds=1"});
    add_confinement(options);
    options.add_account(plan);
    // Nothing of the container's own in /etc and in the environment, and the limits of the unit (setrlimit(2)).
    options.add({"--passwd=false", "--no-hosts", "--http-proxy=false", "--ulimit=host", "--workdir=/",
                 "--oom-score-adj=" + std::to_string(agent_oom_score), host_name_argument("podman", host_name)});
    add_view(plan, options);
    options.add({"--rootfs", options.safe(plan.root_directory), build::exec_path, std::to_string(podman_control_fd)});
    return options.take();
}

} // namespace pi_agent

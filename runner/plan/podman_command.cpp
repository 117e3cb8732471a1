// One container around a tree of ours: nothing of an image, a registry or another container's.
#include "runner/plan/podman_command.hpp"

#include "common/base/build_settings.hpp"
#include "runner/plan/engine_options.hpp"
#include "runner/plan/limits.hpp"

namespace pi_agent {

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

// One container around a tree of ours: nothing of an image, a registry or another container's.
#include "runner/podman_command.hpp"

#include "common/build_settings.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "runner/engine_arguments.hpp"
#include "runner/limits.hpp"
#include "runner/podman_preflight.hpp"

#include <initializer_list>

namespace pi_agent {

namespace {

constexpr const char *shared_memory_bytes = "1073741824"; // it counts against the session's memory, too

// Places of the root tree that only a session's own mounts fill, as under bwrap.
constexpr const char *homes[] = {"/home", "/root", "/run/user"};

class Arguments {
public:
    void add(std::initializer_list<std::string> more) { list_.insert(list_.end(), more); }
    // Under `other` where a test takes the defence out.
    void add_if(const char *defence, const std::string &argument, const std::string &other = "")
    {
        const bool is_on = defence_is_on((std::string("podman:") + defence).c_str());
        if (is_on || !other.empty()) list_.push_back(is_on ? argument : other);
    }
    [[nodiscard]] std::vector<std::string> take() { return std::move(list_); }

private:
    std::vector<std::string> list_;
};

// In a list of options podman splits at commas and knows quotes.
const std::string &safe(const std::string &path)
{
    if (!is_property_safe(path)) throw Failure(ExitStatus::internal, "podman would be told of " + escape_for_display(path));
    return path;
}

std::string mount_of(const std::string &source, const std::string &target, bool read_only)
{
    const bool is_read_only = read_only && defence_is_on("podman:read-only");
    return "--mount=type=bind,src=" + safe(source) + ",dst=" + safe(target) + ",ro=" + (is_read_only ? "true" : "false") +
           ",bind-propagation=rprivate";
}

// Everything below a directory that goes with the unit's mount table, and no file of settings but what is said here: those of the host may
// give every container mounts, variables and devices.
void add_engine(Arguments &arguments)
{
    const std::string top = podman_directory;
    arguments.add({"podman", "--root=" + top + "/root", "--runroot=" + top + "/run", "--tmpdir=" + top + "/tmp",
                   "--network-config-dir=" + top + "/networks", "--storage-driver=vfs", "--events-backend=none",
                   "--cgroup-manager=cgroupfs", "--log-level=error"});
    arguments.add({std::string("--runtime=") + build::crun_path, std::string("--conmon=") + build::conmon_path, "--hooks-dir=" + top});
    arguments.add_if("no-default-mounts", "--default-mounts-file=/dev/null"); // the host's mounts.conf is for containers
}

void add_confinement(Arguments &arguments)
{
    arguments.add_if("no-capabilities", "--cap-drop=ALL", "--cap-add=ALL");
    arguments.add_if("no-new-privileges", "--security-opt=no-new-privileges");
    arguments.add({"--security-opt=seccomp=unconfined"}); // pi-agent-exec installs the list that all methods have, and its own
    arguments.add_if("own-processes", "--pid=private", "--pid=host");
    arguments.add_if("own-ipc", "--ipc=private", "--ipc=host");
    arguments.add_if("read-only", "--read-only");
    arguments.add({"--read-only-tmpfs=false"}); // the view has its own
    // The unit's, which has what the policy says: a namespace of its own, or filters at its control group.
    arguments.add({"--network=host", "--dns=none"});
}

void add_account(const SandboxPlan &plan, Arguments &arguments)
{
    arguments.add({"--user=" + std::to_string(plan.agent.value()) + ":" + std::to_string(plan.agent_group.value())});
    for (const gid_t group : plan.account_groups)
        arguments.add({"--group-add=" + std::to_string(group)});
    for (const Gid group : plan.groups)
        arguments.add({"--group-add=" + std::to_string(group.value())});
}

// podman sorts them: what lies in another's place comes after it. What it would mount by itself at one of these places it leaves out.
void add_view(const SandboxPlan &plan, Arguments &arguments)
{
    for (const char *home : homes)
        arguments.add({std::string("--mount=type=tmpfs,dst=") + home + (defence_is_on("podman:read-only") ? ",ro=true" : "") +
                       ",tmpfs-mode=0755,notmpcopyup"});
    // podman 4.3 would leave it writable. With one that is named, what else it mounts there is left out; the session's own terminals come
    // onto /dev/pts late.
    arguments.add({std::string("--mount=type=tmpfs,dst=/dev") + (defence_is_on("podman:read-only") ? ",ro=true" : "") +
                   ",dev,nosuid,tmpfs-mode=0755"});
    arguments.add({"--mount=type=devpts,dst=/dev/pts"});
    arguments.add({std::string("--mount=type=tmpfs,dst=/dev/shm,tmpfs-mode=1777,notmpcopyup,tmpfs-size=") + shared_memory_bytes});
    for (const Bind &one : plan.binds) {
        arguments.add({mount_of(one.source, one.target, one.read_only)});
        // Else podman shows the host's, or the one of the unit.
        if (one.target == "/sys") arguments.add({mount_of(one.source + "/fs/cgroup", "/sys/fs/cgroup", true)});
    }
}

} // namespace

std::vector<std::string> podman_command(const SandboxPlan &plan, const std::string &host_name)
{
    Arguments arguments;
    add_engine(arguments);
    // The unit is the container's control group, and its limits are the unit's.
    arguments.add({"run", "--pull=never", "--cgroups=disabled", "--log-driver=none", "--systemd=false", "--sdnotify=ignore",
                   "--sig-proxy=false", "--attach=stderr", "--preserve-fds=1"});
    add_confinement(arguments);
    add_account(plan, arguments);
    // Nothing of the container's own in /etc and in the environment, and the limits of the unit (setrlimit(2)).
    arguments.add({"--passwd=false", "--no-hosts", "--http-proxy=false", "--ulimit=host", "--workdir=/",
                   "--oom-score-adj=" + std::to_string(agent_oom_score), host_name_argument("podman", host_name)});
    add_view(plan, arguments);
    arguments.add({"--rootfs", safe(plan.root_directory), build::exec_path, std::to_string(podman_control_fd)});
    return arguments.take();
}

} // namespace pi_agent

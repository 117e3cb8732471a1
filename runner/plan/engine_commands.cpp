// The command lines of the container engines, and bubblewrap's.
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/build_settings.hpp"

namespace pi_agent {

namespace {

constexpr const char *shared_memory_bytes = "1073741824"; // it counts against the session's memory, too

// Places of the root tree that only a session's own mounts fill: each is a read-only tmpfs, empty except for those mounts.
constexpr const char *filled_homes[] = {"/home", "/root", "/run/user"};

// bwrap runs as root without a user namespace, so that what it mounts keeps the host's ids. setpriv needs these to become the agent and to
// give all of them up.
constexpr const char *capabilities_of_setpriv[] = {"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"};

class Options {
public:
    // `program` is "docker", "podman" or "bwrap"; the names of its defences begin with it.
    explicit Options(std::string program) : program_(std::move(program)) {}

    void add(const std::vector<std::string> &more) { list_.insert(list_.end(), more.begin(), more.end()); }
    // Adds `other` where a test takes the defence out.
    void add_if(const char *defence, const std::vector<std::string> &more, const std::vector<std::string> &other = {})
    {
        add(is_on(defence) ? more : other);
    }
    // True unless a test took the program's defence of this name out.
    [[nodiscard]] bool is_on(const char *defence) const { return defence_is_on((program_ + ":" + defence).c_str()); }
    [[nodiscard]] const std::string &program() const noexcept { return program_; }
    [[nodiscard]] std::vector<std::string> take() { return std::move(list_); }

private:
    std::string program_;
    std::vector<std::string> list_;
};

std::vector<std::string> groups_of(const SandboxPlan &plan)
{
    std::vector<std::string> numbers;
    for (const gid_t group : plan.account_groups)
        numbers.push_back(std::to_string(group));
    for (const Gid group : plan.groups)
        numbers.push_back(std::to_string(group.value()));
    return numbers;
}

// Returns `path`, which must have neither comma nor quote in a list of options. Preflight refuses such a path.
const std::string &safe(const std::string &path, const Options &options)
{
    if (!is_property_safe(path)) throw Failure(ExitStatus::internal, options.program() + " would be told of " + escape_for_display(path));
    return path;
}

// A mount that receives none of the host's later mounts.
void add_mount(const Bind &one, Options &options)
{
    const bool is_read_only = one.read_only && options.is_on("read-only");
    options.add({"--mount=type=bind,src=" + safe(one.source, options) + ",dst=" + safe(one.target, options) +
                 ",ro=" + (is_read_only ? "true" : "false") + ",bind-propagation=rprivate"});
}

// Options that both engines understand alike.
void add_container(const SandboxPlan &plan, const EngineContainer &container, Options &options)
{
    options.add({"--log-driver=none", "--sig-proxy=false", "--attach=stderr", "--workdir=/",
                 "--oom-score-adj=" + std::to_string(agent_oom_score), host_name_argument(options.program(), container.host_name)});
    options.add_if("no-capabilities", {"--cap-drop=ALL"}, {"--cap-add=ALL"});
    options.add_if("no-new-privileges", {"--security-opt=no-new-privileges"});
    options.add({"--security-opt=seccomp=unconfined"}); // pi-agent-exec installs the list that all methods have, and its own
    options.add_if("own-ipc", {"--ipc=private"}, {"--ipc=host"});
    options.add_if("read-only", {"--read-only"});
    options.add({"--user=" + std::to_string(plan.agent.value()) + ":" + std::to_string(plan.agent_group.value())});
    for (const auto &group : groups_of(plan))
        options.add({"--group-add=" + group});
}

// Both engines sort the mounts: a mount below another one comes after it. At a place that is listed here they mount nothing by themselves.
void add_view(const SandboxPlan &plan, const EngineContainer &container, Options &options)
{
    const bool is_docker = options.program() == "docker";
    const std::string fresh = is_docker ? "" : ",notmpcopyup";
    const bool is_read_only = options.is_on("read-only");
    for (const char *home : filled_homes)
        options.add({std::string("--mount=type=tmpfs,dst=") + home + (is_read_only ? ",ro=true" : "") + ",tmpfs-mode=0755" + fresh});
    // The engine's own /dev would be writable (podman 4.3). Where one is named, an engine leaves out what else it mounts there; the
    // session's terminals come onto /dev/pts late.
    if (is_docker)
        options.add({std::string("--tmpfs=/dev:") + (is_read_only ? "ro" : "rw") + ",dev,nosuid,noexec,mode=0755",
                     "--mount=type=tmpfs,dst=/dev/pts,ro=true,tmpfs-mode=0755"});
    else
        options.add({std::string("--mount=type=tmpfs,dst=/dev") + (is_read_only ? ",ro=true" : "") + ",dev,nosuid,tmpfs-mode=0755",
                     "--mount=type=devpts,dst=/dev/pts"});
    options.add({"--mount=type=tmpfs,dst=/dev/shm,tmpfs-mode=1777" + fresh + ",tmpfs-size=" + shared_memory_bytes});
    // All of it is read-only, and podman makes writable what it is not told to make read-only, even where its source was not.
    for (const Bind &one : container.tree)
        add_mount({one.source, one.target, one.read_only || !is_docker}, options);
    for (const Bind &one : plan.binds) {
        add_mount(one, options);
        // Otherwise docker shows the host's control groups, and podman those or the unit's.
        if (one.target == "/sys") add_mount({one.source + "/fs/cgroup", "/sys/fs/cgroup", true}, options);
    }
}

void add_bwrap_bind(const Bind &bind, Options &options)
{
    // bwrap makes missing directories 0700, and the agent must be able to pass through them.
    for (std::size_t slash = bind.target.find('/', 1); slash != std::string::npos; slash = bind.target.find('/', slash + 1))
        options.add({"--perms", "0755", "--dir", bind.target.substr(0, slash)});
    options.add({bind.read_only ? "--ro-bind" : "--bind", bind.source, bind.target});
}

// Lists mounts in the order in which bubblewrap makes them.
void add_bwrap_view(const SandboxPlan &plan, Options &options)
{
    options.add({"--bind", plan.root_directory, "/", "--proc", "/proc", "--dev", "/dev"});
    options.add({"--perms", "1777", "--size", shared_memory_bytes, "--tmpfs", "/dev/shm"});
    std::vector<Bind> binds = plan.binds;
    // A mount below another one must come after it.
    const auto depth = [](const Bind &bind) { return std::count(bind.target.begin(), bind.target.end(), '/'); };
    std::stable_sort(binds.begin(), binds.end(), [&](const Bind &one, const Bind &other) { return depth(one) < depth(other); });
    const auto is_run = [](const Bind &bind) { return bind.target == "/run"; };
    for (const auto &bind : binds)
        if (is_run(bind)) add_bwrap_bind(bind, options); // it holds the place of /run/user
    for (const char *home : filled_homes)
        options.add({"--perms", "0755", "--tmpfs", home});
    for (const auto &bind : binds)
        if (!is_run(bind)) add_bwrap_bind(bind, options);
    for (const char *home : filled_homes)
        options.add_if("read-only", {"--remount-ro", home});
    options.add_if("read-only", {"--remount-ro", "/dev", "--remount-ro", "/"});
}

} // namespace

std::string host_name_argument(const std::string &engine, const std::string &name)
{
    if (name.empty() || !is_property_safe(name))
        throw Failure(FailureKind::sandbox_method, "the name of this host (" + escape_for_display(name) + ") has characters that " +
                                                       engine +
                                                       " does not accept; ask the administrator to rename the host (hostnamectl "
                                                       "set-hostname) or to choose another sandbox.method");
    return "--hostname=" + name;
}

std::string container_name(const std::string &session_id)
{
    return "pi-agent-" + session_id;
}

std::vector<std::string> docker_command(const SandboxPlan &plan, const EngineContainer &container)
{
    Options options("docker");
    // States everything that the daemon's settings could otherwise choose.
    options.add({"docker", std::string("--host=unix://") + docker_socket, std::string("--config=") + docker_directory});
    options.add(
        {"run", "--rm", "--pull=never", "--name=" + container_name(plan.session_id), "--runtime=runc", "--init=false", "--no-healthcheck"});
    // The container is below the unit's control group, so the unit's limits and end apply to it.
    options.add({"--cgroup-parent=" + container.control_group});
    add_container(plan, container, options);
    options.add({"--userns=host"}); // the mounts are id-mapped already
    const bool has_none = has_own_network(plan.network.mode) && options.is_on("own-network");
    options.add({has_none ? "--network=none" : "--network=host"}); // filters are at the unit's control group
    // As everywhere else. The daemon gives each network of its own 0, and the agent could take the gate's ports once it has ended.
    if (has_none) options.add({"--sysctl=net.ipv4.ip_unprivileged_port_start=1024"});
    options.add({"--ulimit=core=0:0"}); // as the unit has it (setrlimit(2)); a container has the limits of the daemon
    add_view(plan, container, options);
    options.add({std::string("--entrypoint=") + build::exec_path, safe(container.image.id, options), door_inside});
    return options.take();
}

std::vector<std::string> podman_command(const SandboxPlan &plan, const EngineContainer &container)
{
    Options options("podman");
    const auto &[id, driver] = container.image;
    // Keeps everything below a directory that disappears with the unit's mount table, and reads only the settings given here: the host's
    // files may give every container mounts, variables and devices.
    const std::string top = podman_directory;
    options.add({"podman", "--root=" + top + "/root", "--runroot=" + top + "/run", "--tmpdir=" + top + "/tmp",
                 "--network-config-dir=" + top + "/networks", "--storage-driver=" + driver, "--events-backend=none",
                 "--cgroup-manager=cgroupfs", "--log-level=error"});
    // Root's images, which podman reads there and never writes (containers-storage.conf(5), additionalimagestores).
    if (!id.empty()) options.add({"--storage-opt=" + driver + ".imagestore=" + podman_images});
    options.add({std::string("--runtime=") + build::crun_path, std::string("--conmon=") + build::conmon_path, "--hooks-dir=" + top});
    options.add_if("no-default-mounts", {"--default-mounts-file=/dev/null"}); // the host's mounts.conf is for containers
    // The unit's control group serves as the container's, so the unit's limits apply.
    options.add({"run", "--pull=never", "--cgroups=disabled", "--systemd=false", "--sdnotify=ignore"});
    add_container(plan, container, options);
    options.add_if("own-processes", {"--pid=private"}, {"--pid=host"});
    options.add({"--read-only-tmpfs=false"}); // the view has its own
    // The unit's network, which already is what the policy says: a namespace of its own, or filters at its control group.
    options.add({"--network=host", "--dns=none"});
    // The container itself adds nothing to /etc and the environment, and the limits of the unit hold (setrlimit(2)).
    options.add({"--passwd=false", "--no-hosts", "--http-proxy=false", "--ulimit=host"});
    add_view(plan, container, options);
    if (id.empty()) {
        options.add({"--rootfs", safe(plan.root_directory, options), build::exec_path, door_inside});
        return options.take();
    }
    // The image brings files alone: its variables would reach the launcher, and the agent could write to its volumes.
    options.add_if("plain-image", {"--unsetenv-all", "--image-volume=ignore"});
    options.add({"--no-healthcheck", std::string("--entrypoint=") + build::exec_path, safe(id, options), door_inside});
    return options.take();
}

std::vector<std::string> bwrap_command(const SandboxPlan &plan)
{
    Options options("bwrap");
    options.add({build::setpriv_path, "--reuid", std::to_string(plan.agent.value()), "--regid", std::to_string(plan.agent_group.value())});
    std::string groups;
    for (const auto &group : groups_of(plan))
        groups += (groups.empty() ? "" : ",") + group;
    if (groups.empty())
        options.add({"--clear-groups"});
    else
        options.add({"--groups", groups});
    options.add_if("no-capabilities", {"--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"});
    options.add({"--no-new-privs", "--", build::exec_path});
    return options.take();
}

std::vector<std::string> bwrap_options(const SandboxPlan &plan, int info_fd)
{
    Options options("bwrap");
    options.add({"--info-fd", std::to_string(info_fd), "--clearenv"});
    options.add_if("die-with-parent", {"--die-with-parent"});
    options.add_if("own-processes", {"--unshare-pid"});
    options.add_if("own-ipc", {"--unshare-ipc"});
    options.add({"--unshare-uts"});
    if (has_own_network(plan.network.mode)) options.add_if("own-network", {"--unshare-net"});
    options.add({"--cap-drop", "ALL"});
    for (const char *capability : capabilities_of_setpriv)
        options.add({"--cap-add", capability});
    add_bwrap_view(plan, options);
    options.add({"--chdir", "/"});
    return options.take();
}

} // namespace pi_agent

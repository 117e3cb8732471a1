// The command lines of the container engines, and bubblewrap's. And how a session ended, and what its agent is told.
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/build_settings.hpp"

#include <fmt/format.h>

#include <csignal>

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
    auto numbers = mapped(plan.account_groups, [&](const gid_t group) { return std::to_string(group); });
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

// --- How a session ended, which limits it reached, and what the agent is told of its sandbox.

constexpr std::size_t path_length = 80; // bytes of one name

// A line of the notes, or what continues one, and the facts that must all hold; '!' before one: it must not.
struct BoxNote {
    const char *text;
    std::string_view when = "";
};
constexpr BoxNote box_note_texts[] = {
#include "runner/box_notes.inc"
};

// Names a few of the items.
template <typename Item>
std::string few(const std::vector<Item> &items, std::size_t most, std::string (*show)(const Item &))
{
    std::string names;
    for (std::size_t index = 0; index < std::min(items.size(), most); ++index)
        names += (index == 0 ? "" : ", ") + show(items[index]);
    if (items.size() > most) names += " and " + std::to_string(items.size() - most) + " more";
    return names;
}

std::string names_of(const std::vector<std::string> &paths)
{
    return few<std::string>(paths, 3, [](const std::string &path) { return "`" + escape_for_display(path.substr(0, path_length)) + "`"; });
}

std::string limits_text(const LimitsPolicy &limits)
{
    std::string text;
    for (const auto &row : limit_rows)
        if (row.note != nullptr && in_force(limits, row)) text += (text.empty() ? "" : ", ") + text_in_force(limits, row) + " " + row.note;
    return text;
}

std::string said_or_default(const char *key, const std::optional<SaidLimit> &said, const std::string &otherwise)
{
    if (said) return said->text + " (limits." + key + ", " + to_string(said->where) + ")";
    return otherwise + " (the default; limits." + key + " in the policy sets another)";
}

std::string memory_notice(const LimitsPolicy &limits, const LimitEvents &events, bool agent_killed)
{
    const std::string whose = agent_killed         ? "the agent, or what it ran"
                              : events.killed == 1 ? "one of its processes, and the agent went on"
                                                   : std::to_string(events.killed) + " of its processes, and the agent went on";
    const std::string limit = said_or_default("memory", said_memory(limits),
                                              text_in_force(limits, limit_row(&LimitsPolicy::memory_share)) + " of the host's memory");
    if (events.own_memory)
        return "out of memory: the session reached its limit of " + limit + ", and the kernel killed " + whose +
               "; let it do less at once (fewer parallel jobs), or ask the administrator for more";
    return "out of memory: the host, or all your sessions together, had no more, and the kernel killed " + whose +
           "; the session itself was below its limit of " + limit + "; end other sessions, or let it do less at once";
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
    const auto groups = joined(groups_of(plan), ",");
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

std::string box_notes(const BoxFacts &facts)
{
    const Policy &policy = facts.policy;
    const NetworkMode network = policy.network.mode;
    const bool owned_by_user = policy.projects.ownership == ProjectOwnership::idmap;
    const std::vector<std::string> refused_calls = denied_calls_of(policy.calls);
    // One word covers the paths from which git runs programs: they are most of the list.
    std::vector<std::string> others = facts.read_only;
    const bool has_git = std::erase_if(others, [](const std::string &path) { return path.find(".git/") != std::string::npos; }) > 0;
    const std::map<std::string_view, bool> holds = {
        {"read_only", policy.projects.read_only},
        {"owned", owned_by_user},
        {"in_memory", policy.scratch == ScratchKind::tmpfs},
        {"confined", facts.confined},
        {"hidden", !facts.hidden.empty()},
        {"git", has_git},
        {"others", !others.empty()},
        {"few_ids", !facts.knows_ids},
        {"masked", facts.masked},
        {"full", network == NetworkMode::full},
        {"none", network == NetworkMode::none},
        {"loopback", network == NetworkMode::loopback},
        {"listed", network == NetworkMode::listed},
        {"hosts", network == NetworkMode::hosts},
        {"named", !policy.network.hosts.empty()},
        {"refused_calls", !refused_calls.empty()},
        {"toolchains", !facts.toolchains.empty()},
        {"caches", !facts.caches.empty()},
        {"never_traced", policy.tracing == Tracing::never},
        {"limited", facts.limited},
        {"locked", policy.settings_lock},
    };
    std::string notes = "# The sandbox you work in (pi-agent)\n";
    for (const auto &[text, when] : box_note_texts) {
        const auto words = split(when, ' ');
        const auto is_true = [&](std::string_view word) {
            return word.empty() || (word[0] == '!' ? !holds.at(word.substr(1)) : holds.at(word));
        };
        if (!std::all_of(words.begin(), words.end(), is_true)) continue;
        if (std::string_view(text).starts_with("- ")) notes += '\n';
        notes += fmt::format(fmt::runtime(text), fmt::arg("account", facts.account), fmt::arg("home", facts.home),
                             fmt::arg("project", escape_for_display(facts.project)), fmt::arg("memory", scratch_memory_share),
                             fmt::arg("hidden", names_of(facts.hidden)), fmt::arg("others", names_of(others)),
                             fmt::arg("refused_calls", names_of(refused_calls)), fmt::arg("toolchains", names_of(facts.toolchains)),
                             fmt::arg("caches", names_of(facts.caches)), fmt::arg("limits", limits_text(policy.limits)),
                             fmt::arg("hosts", few<HostRule>(policy.network.hosts, 12, to_string)),
                             fmt::arg("ranges", few<IpRange>(policy.network.allowed, 8, to_string)));
    }
    return notes + '\n';
}

AgentEnded agent_end(const SandboxResult &seen, const std::optional<ExecEnded> &said, bool killed)
{
    const bool is_signal = said && said->by_signal && said->value > 0 && said->value < NSIG;
    // systemd has forgotten the process, or never saw it end (seen on 257). The unit is over, so a launcher gains nothing by lying about
    // how.
    if (seen.code == 0) {
        // Nor does it see the end of a unit that it kills itself, all at once, on a stop or a time limit (seen on 257): the signal is
        // KillSignal=.
        if (!said && (killed || seen.result == "timeout" || seen.result == "oom-kill")) return AgentEnded{true, SIGKILL};
        if (!said)
            throw Failure(ExitStatus::system_failure,
                          "nobody can say how the session ended: neither its unit nor the process inside reported it");
        return is_signal ? AgentEnded{true, said->value} : AgentEnded{false, said->value & 0xFF};
    }
    if (seen.code != CLD_EXITED) return AgentEnded{true, seen.status};
    return is_signal && seen.status == 128 + said->value ? AgentEnded{true, said->value} : AgentEnded{false, seen.status};
}

SandboxResult without_own_kill(SandboxResult seen)
{
    if (seen.code != CLD_EXITED) seen.code = 0;
    return seen;
}

std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted)
{
    std::vector<std::string> notices;
    const bool killed = ended.by_signal && ended.value == SIGKILL;
    // systemd reports the same for a unit that is slow to stop.
    if (limits.runtime && result == "timeout" && lasted >= std::chrono::seconds(limits.runtime->amount))
        notices.push_back("out of time: a session may last " + said_or_default("runtime", limits.runtime, "") +
                          ", and this one was ended; start pi again to go on, or ask the administrator for more");
    if (events.killed > 0 || result == "oom-kill") notices.push_back(memory_notice(limits, events, killed));
    if (events.refused_tasks > 0)
        notices.push_back("out of processes: the session reached its limit of " +
                          said_or_default("tasks", limits.tasks, std::to_string(in_force(limits, &LimitsPolicy::tasks))) +
                          ", or all your sessions together theirs, and " +
                          (events.refused_tasks == 1 ? "one start of a process or thread"
                                                     : std::to_string(events.refused_tasks) + " starts of processes or threads") +
                          " failed inside (EAGAIN); let it do less at once, or ask the administrator for more");
    return notices;
}

SystemdFeatures systemd_features(const std::string &version)
{
    unsigned number = 0;
    if (const auto parsed = std::from_chars(version.data(), version.data() + version.size(), number); parsed.ec != std::errc())
        throw Failure(FailureKind::sandbox_method, "systemd reports the version " + escape_for_display(version) +
                                                       ", which does not begin with a number; compare it with: systemctl --version");
    if (number < oldest_systemd)
        throw Failure(FailureKind::sandbox_method, "this host runs systemd " + std::to_string(number) +
                                                       ", and sandbox.method systemd needs " + std::to_string(oldest_systemd) +
                                                       " or newer; ask the administrator to upgrade this host or to choose another method");
    return {number, number >= systemd_with_private_pids, number >= systemd_with_log_sockets, number >= systemd_with_identity_ids};
}

} // namespace pi_agent

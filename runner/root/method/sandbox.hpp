// The ways to run a session's agent, the units that systemd makes for it, and what engines and systemd answer.
#pragma once

#include "runner/root/kernel/host_facts.hpp"

namespace pi_agent {

// --- The one seam towards systemd (org.freedesktop.systemd1(5)). Only its source uses sdbus-c++. Every text that leaves here is in the
// property alphabet.

struct CompanionUnit {
    std::string name;
    std::vector<UnitProperty> properties;
};

// Borrowed, copied by systemd. An empty one is what the service's properties say.
struct ServiceStreams {
    FdRef input, output, error;
};

class SystemdBus {
public:
    // Throws Failure(unavailable) when systemd does not answer.
    explicit SystemdBus(const AsRoot &root);
    SystemdBus(const SystemdBus &) = delete;
    SystemdBus &operator=(const SystemdBus &) = delete;
    ~SystemdBus();

    // Makes systemd move this process into a scope of its own. Does not wait: wait_until_inside() (host_facts.hpp) does.
    void request_scope(const std::string &name, const std::vector<UnitProperty> &properties);
    // Of the version that runs. And that version in systemd's own words, for any account.
    const SystemdFeatures &features();
    static std::string version_for_anybody();
    // From here on service_result() is about this service. Call it before start_service(), so that it misses nothing.
    void watch_service(const std::string &name);
    // Queues the start, with another unit that it needs.
    void start_service(const std::string &name, const std::vector<UnitProperty> &properties, const CompanionUnit &cleanup,
                       const ServiceStreams &streams);
    // The same for a service alone. Where it does not wait for the answer, which takes systemd 3 ms, nobody hears of a refusal: ask again.
    void start_program(const std::string &name, const std::vector<UnitProperty> &properties, const ServiceStreams &streams,
                       bool waits = true);
    // Queues the stop; a unit that is gone is fine.
    void stop_unit(const std::string &name);
    bool unit_exists(const std::string &name);
    // The host's own files that change the unit; none where there is no such unit.
    std::vector<std::string> drop_ins(const std::string &name);
    // Of the service that is watched.
    SandboxResult service_result();
    // As systemd reports it, also after the end. Leaves out what it does not count, or does not know yet (MemoryPeak: from 255 on).
    UnitUsage service_usage();

    // For poll(2): wait for input on fd until next_look(), then call process().
    [[nodiscard]] FdRef fd() const;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const;
    void process();

private:
    struct Connection;
    std::unique_ptr<Connection> connection_;
    std::optional<SystemdFeatures> features_; // once it was asked
};

// --- Whether root's podman or docker can hold a session here, asked at every launch before anything is mounted; and how the session's view
// lies over the root directory of an image.

struct EngineHost {
    EngineImage image = {};
    // The links at the top of podman's image, and where they lead: "lib", "usr/lib".
    std::map<std::string, std::string> links = {};
    gid_t docker_group = 0; // besides root, may ask docker's daemon
};

// With the policy's image, if it names one. Throws Failure with the reason and the remedy: also where a program of the engine's is missing.
EngineHost require_engine(const AsRoot &root, const SandboxPolicy &policy);

// The id in the daemon's description of an image. Throws Failure(unavailable) where the image brings more than files: the launcher, and the
// agent, would get its variables and volumes.
std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy);

// The id of the image that `name` means in podman's list of images (images.json of containers-storage); empty if it lacks that. A name
// without a registry means one of this host's own (localhost), or one of docker.io, in this order.
std::string find_podman_image(const nlohmann::json &list, const std::string &name);

// The layers of an image, the topmost first, by podman's lists of images and layers; none where a layer is missing.
std::vector<std::string> layers_of_image(const nlohmann::json &images, const nlohmann::json &layers, const std::string &id);

// What is bound over an image's root directory: every directory at the top of the plan's tree, except those that the plan's binds or the
// engine fill; symlinks to programs as the directories that they lead to; and the plan's late files, which are made empty here. Makes the
// mount points for the plan's binds in the tree.
std::vector<Bind> show_tree(const SandboxPlan &plan);

// `tree` without what a link at the top of podman's image leads to already. podman mounts in no order at the top, so at another link a part
// of the tree could cover another part: throws Failure(unavailable) where the image has one. `top`: the plan's root directory.
std::vector<Bind> lay_over_links(std::vector<Bind> tree, const std::string &top, const EngineHost &host, const SandboxPolicy &policy);

// --- Asks docker's daemon over its socket, as root and without running a program: a few questions of its API and removals, with bounds.

// The group that may ask the daemon, which is root's power; 0 where only root may. Throws Failure(unavailable) where there is no socket,
// and Failure(configuration) where others than root and the group docker may write to it.
gid_t require_docker_socket(const AsRoot &root);

struct DockerAnswer {
    int status = 0; // of HTTP
    nlohmann::json body;
};

// `path` is in the alphabet of URLs. Throws Failure(unavailable) when the daemon gives no answer that can be read.
DockerAnswer ask_docker(const AsRoot &root, const std::string &path, Deadline deadline);

// Removes a container, whatever its state. best_effort: one that has ended is gone already, and the daemon may be gone.
void remove_container(const AsRoot &root, const std::string &name, Deadline deadline) noexcept;

// Names ("/pi-agent-…") of containers that exist and do not run. Throws Failure(unavailable), also where the daemon describes one in
// another way.
std::vector<std::string> ended_containers(const AsRoot &root, Deadline deadline);
std::vector<std::string> parse_ended_containers(const std::string &text);

// Removes none that runs by now: the daemon refuses that. One that is gone is fine. Throws Failure(unavailable).
void remove_ended_container(const AsRoot &root, const std::string &name, Deadline deadline);

// Parses an answer as the daemon sends it, a list or an object. Throws Failure(unavailable).
DockerAnswer parse_docker_answer(const std::string &text, bool is_list = false);

// --- One way to run the session's launcher (pi-agent-exec) confined: what every method offers the runner. Each method starts and ends it
// in its own file (sandbox_*.cpp). The checks against the kernel, and the words for people, are the same code for all.

// What a program writes into a pipe: its beginning, without newlines at the end.
class Overheard {
public:
    // The program's end of the pipe; call it once.
    UniqueFd open();
    // False once no more can come.
    explicit operator bool() const { return pipe_.is_open(); }
    [[nodiscard]] FdRef fd() const { return pipe_; }
    // What has come so far.
    const std::string &text();
    void close() { pipe_.reset(); }

private:
    UniqueFd pipe_;
    std::string text_;
};

// What is known of a session before it is started.
struct SandboxFacts {
    Restrictions restrictions;           // what pi-agent-exec must restrict besides. none: only the agent's account keeps it from the host
    std::vector<std::string> namespaces; // the kinds that it has of its own (namespaces(7): "mnt", "pid", …), whatever its network
    std::vector<std::string> own_files = {}; // of the view's /etc, which come from the method itself, and from nowhere else
    std::uint32_t known_ids = UINT32_MAX;    // as many ids of the host's accounts and groups can stand in an access control list there
    std::string name = {};                   // what is being built: "the session's unit pi-agent-….service"
};

class Sandbox {
public:
    Sandbox(const Sandbox &) = delete;
    Sandbox &operator=(const Sandbox &) = delete;
    virtual ~Sandbox() = default;

    // --- Its life.

    // Leaves the caller's control group, where the caller could freeze or kill this process (design rule 8). Throws Failure(unavailable),
    // also for a host on which the method cannot work at all. Where that takes a while, runs `meanwhile`: the caller may still freeze or
    // kill this process during it.
    virtual void leave_callers_group(const std::function<void()> &meanwhile) = 0;

    // Begins to build it; `launcher` becomes the standard input of pi-agent-exec (borrowed). Once.
    virtual void start(const SandboxPlan &plan, FdRef launcher) = 0;
    // Asks for the end of all of it, at once; a session that is gone is fine.
    virtual void stop() = 0;
    // The same with the kernel alone, for when nobody else may answer any more. Throws.
    void kill();
    virtual SandboxResult result() = 0;

    // For poll(2): wait for input on fd until next_look(), then call process().
    [[nodiscard]] FdRef fd() const { return events_; }
    [[nodiscard]] Deadline next_look(Deadline otherwise) const;
    virtual void process() = 0;

    // What runs in the sandbox now; one that has just ended may be among them.
    virtual std::vector<pid_t> processes() { return processes_in(*group()); }
    // The mount ("mnt") or network ("net") namespace that the launcher has of its own. Call it when the launcher runs, and before it has
    // started anything. Throws Failure where it has no such namespace.
    UniqueFd namespace_of_launcher(const std::string &kind);

    // Whether something of this session may still run in it; and the same for another session, whose runner is gone.
    virtual bool is_there() = 0;
    bool may_live(const std::string &session_id);

    // --- What the kernel reports, once the launcher runs.

    // Call it before anything of the agent's is sent in. Throws Failure(unavailable) unless the processes there are in namespaces of their
    // own, where nothing else makes sure, and the policy's network and limits are in force.
    void require_enforced(const Policy &policy);
    // What it has used until now, also after its end. Leaves out what neither kernel nor method reports.
    UnitUsage usage();
    // What the kernel counted for the limits while any process of the session is there; and whether there are limits, defaults included.
    LimitEvents limit_events();
    [[nodiscard]] bool has_limits() const;

    // --- Words and facts about the method.

    [[nodiscard]] const SandboxFacts &facts() const { return facts_; }
    [[nodiscard]] bool confines() const { return facts_.restrictions != Restrictions::none; }
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const;
    [[nodiscard]] const std::string &id() const { return id_; } // of the session
    [[nodiscard]] Uid user() const { return user_; }
    // Why it did not come about, and where to read more ("; see: journalctl -u …", or nothing).
    std::string explain(const SandboxResult &result);
    [[nodiscard]] std::string where_to_look() const;

    // --- For the session's gate.

    // Throws Failure where the method has no units, and so no gate.
    [[nodiscard]] SystemdBus &systemd();
    // Throws where the host changes the unit in what confines it.
    void require_harmless_drop_ins(const std::string &unit);

protected:
    // Borrows root. Throws Failure(unavailable) when systemd does not answer, where the method has units.
    Sandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user);
    [[nodiscard]] const AsRoot &root() const { return root_; }
    [[nodiscard]] SandboxMethod method() const { return method_; }

    // process() is called when it has input.
    void watch(FdRef fd);
    void forget(FdRef fd);

    // The group of what it confines, whether it exists or not; none where the method has not made one.
    [[nodiscard]] virtual std::optional<ControlGroup> group() const = 0;
    virtual void require_confined() {}

    SandboxFacts facts_;
    Overheard complaint_;            // of the program that builds it, on standard error
    Deadline due_ = Deadline::max(); // when to look again

private:
    [[nodiscard]] std::string builder() const; // what makes the sandbox: "systemd", "bwrap" or an engine
    void require_own_namespaces();
    void require_network(const NetworkPolicy &network);
    void require_limits(const LimitsPolicy &limits);

    const AsRoot &root_;
    SandboxMethod method_;
    std::string id_;
    Uid user_;
    UniqueFd events_; // epoll
    std::optional<SystemdBus> systemd_;
};

// --- sandbox.method systemd: a hardened unit. And sandbox.method none: a plain one, which confines its processes only by the policy's
// network and limits. It still has what makes a session: its account, its view of files, its limits and its end.

class SystemdSandbox : public Sandbox {
public:
    SystemdSandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user);

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override { start_unit(plan, {launcher, FdRef(-1), FdRef(-1)}); }
    void stop() override;
    SandboxResult result() override { return systemd().service_result(); }
    void process() override { systemd().process(); }
    bool is_there() override;

protected:
    // Starts the session's unit with these as its standard descriptors; an empty one becomes /dev/null.
    void start_unit(const SandboxPlan &plan, const ServiceStreams &streams);
    [[nodiscard]] std::optional<ControlGroup> group() const override { return group_beside_runner(id(), service_); }
    void require_confined() override { require_harmless_drop_ins(service_); }

private:
    std::string service_;
    bool was_taken_in_ = false; // systemd has answered that it starts the session's unit
};

// --- Every method.

// The one place that turns the policy's method into a sandbox, for one session. Throws Failure(unavailable) when this host cannot offer the
// method; never chooses another one instead.
std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user);

// The same for bubblewrap, for hosts where systemd is not PID 1 (containers, WSL, chroots), and for a container of an engine's.
std::unique_ptr<Sandbox> make_bwrap_sandbox(const AsRoot &root, const std::string &session_id, Uid user);
std::unique_ptr<Sandbox> make_engine_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user);

// Whether sandbox.method bwrap can work here, asked at every launch before anything is mounted. Throws Failure(unavailable) with the reason
// and the remedy.
void require_bwrap(const AsRoot &root);
// The same for the policy's network.
void require_bwrap_network(const AsRoot &root, const NetworkPolicy &network);

// The programs of the host that a method runs as root.
struct MethodProgram {
    const char *path;
    const char *package; // the package of Debian's that has it
};
std::vector<MethodProgram> programs_of(SandboxMethod method);

// Why the method cannot use this program, with the remedy; none when it exists. Throws Failure(configuration) when others than root can
// change it.
std::optional<std::string> problem_of_program(SandboxMethod method, const MethodProgram &program);

// Throws Failure(unavailable) for the first program that is missing.
void require_method_programs(SandboxMethod method);

// Writes the command line of bwrap or of an engine into a file in memory, as NUL-terminated texts: every user can read an argv, and a
// property of a unit cannot hold a comma. `program` names it, for messages too. Throws SystemFailure.
UniqueFd write_arguments(const std::string &program, const std::vector<std::string> &arguments);

// --- Moves the runner out of its caller's control group.

// Has systemd move this process into the scope of this session's name, and runs `meanwhile` while it does. A process that ends during the
// move leaves its scope behind, empty and for ever. So this waits for the move, whatever fails meanwhile. Only the scope's user can then
// still kill the process (cgroup.kill), so the empty scopes of others are stopped (best_effort: what fails is recorded).
void move_into_scope(SystemdBus &systemd, const std::string &session_id, Uid user, const std::function<void()> &meanwhile);

// Empty scopes of runners, of all users, a bounded number at once. Throws where nobody can tell.
std::vector<std::string> find_empty_scopes(SystemdBus &systemd);

// --- What a running session uses at this moment, from the kernel.

// `runner` is the process that runs it. Empty where the session has no control group of its own: before its sandbox has started, after it
// has ended, and under bwrap where root cannot write the hierarchy.
SessionUsage usage_of_session(const std::string &session_id, pid_t runner);

// --- The gate of one session: its unit, the channel to it, and what must stay open for it.

// Sockets in the session's network namespace, for the gate outside of it.
struct GateSockets {
    std::vector<ReceivedListener> listeners;
    UniqueFd lookup; // while it is open, connections arrive at the listeners
};

// Call it when the launcher runs, and before it has started anything: then nobody else can have taken a port there. Makes every address
// local there, IPv4 and IPv6, and listens; `host_ports`: of the host's own loopback that the policy names, found at the same ports inside.
// Throws Failure for the host's own network, and where the kernel cannot do it: without it the session reaches nothing at all.
GateSockets open_gate_sockets(const AsRoot &root, FdRef network_namespace, const std::vector<std::uint16_t> &host_ports);

class SessionGate {
public:
    // Begins to start it. It waits for its order. Borrows the sandbox.
    SessionGate(Sandbox &sandbox, GateRoot root);
    SessionGate(const SessionGate &) = delete;
    SessionGate &operator=(const SessionGate &) = delete;
    // Waits for the end of one that was not opened: systemd may still be making its file system, in a directory of the session that is
    // removed next. An open one ends with its channel, and nobody waits.
    ~SessionGate();
    // Call it when the launcher runs, and before it has started anything. Opens the gate's listeners in the session's network, hands them
    // over with the order, and returns when the gate serves. Throws Failure(unavailable) when it does not. The caller forgets the keys.
    void open(const AsRoot &root, GateOrder &order, const std::vector<std::uint16_t> &host_ports);
    // Ends it, whatever it does: with the kernel alone. Throws.
    void kill();
    // Closed, the gate ends.
    [[nodiscard]] FdRef channel() const { return channel_; }
    // What the gate says afterwards comes here, and its end.
    [[nodiscard]] FdRef said() const { return said_; }

private:
    void end();

    Sandbox &sandbox_;
    const GateRoot root_;
    bool is_open_ = false;
    UniqueFd channel_; // takes in nothing that the gate sends
    UniqueFd said_;
    UniqueFd lookup_; // without it, connections to other addresses are refused
};

} // namespace pi_agent

// One way to run the session's launcher (pi-agent-exec) confined: what every method offers the runner. Each method starts and ends it in
// its own file (sandbox_*.cpp). The checks against the kernel, and the words for people, are the same code for all.
#pragma once

#include "runner/root/kernel/control_group.hpp"
#include "runner/root/method/systemd_bus.hpp"

namespace pi_agent {

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
    void start(const SandboxPlan &plan, FdRef launcher) override;
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

} // namespace pi_agent

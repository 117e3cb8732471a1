// One way to run the session's launcher (pi-agent-exec) confined: what every method offers the runner. Each method starts and ends it in
// its own file (sandbox_*.cpp). The checks against the kernel, and the words for people, are the same code for all.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/limits.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <initializer_list>

namespace pi_agent {

struct GateRoot; // runner/plan/gate_plan.hpp

// best_effort, for notices and the record: a look that fails ends no session, and hides no exit status.
template <typename Look>
auto if_it_can_be_read(const Look &look) -> decltype(look())
{
    try {
        return look();
    } catch (const Failure &) {
        return {};
    }
}

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

// What all sessions of a method share.
struct MethodTraits {
    Restrictions restrictions;
    std::vector<std::string> namespaces; // its own ones, whatever the network
    std::vector<std::string> own_files;
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
    virtual void kill() = 0;
    virtual SandboxResult result() = 0;

    // For poll(2): wait for input on fd until next_look(), then call process().
    [[nodiscard]] FdRef fd() const { return events_; }
    [[nodiscard]] virtual Deadline next_look(Deadline otherwise) const = 0;
    virtual void process() = 0;

    // Call it when the launcher runs, and before it has started anything. Throws Failure when it has no mount namespace of its own.
    virtual UniqueFd mount_namespace() = 0;
    // The same of its network namespace, for a session that has one of its own.
    virtual UniqueFd network_namespace();
    // Begins to start the session's gate (gate/), beside the sandbox and as long-lived as this process; `channel` becomes its standard
    // input, and `says` its standard output (borrowed). Once. Throws Failure where the method cannot.
    virtual void start_gate(const GateRoot &root, FdRef channel, FdRef says);
    // Why systemd does not start such a gate, where one that was asked for has ended without a word; empty where it does. Throws.
    virtual std::string refusal_of_gate(const GateRoot & /*root*/) { return ""; }
    // Ends one that has no order yet, and whose channel is closed; returns when it is gone. Throws.
    virtual void end_gate() {}
    // Ends that gate, whatever it does: with the kernel alone. Throws.
    virtual void kill_gate();
    // What runs in the sandbox now; one that has just ended may be among them.
    virtual std::vector<pid_t> processes() = 0;

    // Whether something of this session may still run in it; and the same for another session, whose runner is gone.
    virtual bool is_there() = 0;
    virtual bool may_live(const std::string &session_id) = 0;

    // --- What the kernel reports, once the launcher runs.

    // Call it before anything of the agent's is sent in. Throws Failure(unavailable) unless the processes there are in namespaces of their
    // own, where nothing else makes sure, and the policy's network and limits are in force.
    void require_enforced(const Policy &policy);
    // What it has used until now, also after its end. Leaves out what neither kernel nor method reports.
    virtual UnitUsage usage();
    // What the kernel counted for the limits while any process of the session is there; and whether there are limits, defaults included.
    LimitEvents limit_events();
    [[nodiscard]] bool has_limits() const;

    // --- Words and facts about the method.

    [[nodiscard]] const std::string &session() const { return id_; }
    // What is being built ("the session's unit pi-agent-….service"), why it did not come about, and where to read more ("; see: journalctl
    // -u …", or nothing).
    [[nodiscard]] virtual std::string name() const = 0;
    virtual std::string explain(const SandboxResult &result) = 0;
    [[nodiscard]] std::string where_to_look() const;

    // The kinds of namespaces (namespaces(7): "mnt", "pid", …) of which a session of this plan gets its own.
    [[nodiscard]] virtual std::vector<std::string> own_namespaces(const NetworkPolicy &network) const;
    // Whether processes there can name other accounts and groups of the host in an access control list, if only to copy one.
    [[nodiscard]] virtual bool knows_other_ids(const Account & /*agent*/) const { return true; }
    // Files of the view's /etc that come from the method itself, and from nowhere else.
    [[nodiscard]] const std::vector<std::string> &own_files() const { return traits_.own_files; }
    // What pi-agent-exec must restrict besides. none: only the agent's account keeps it from the host.
    [[nodiscard]] Restrictions restrictions() const { return traits_.restrictions; }
    [[nodiscard]] bool confines() const { return restrictions() != Restrictions::none; }

protected:
    // Borrows root.
    Sandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user);
    [[nodiscard]] const AsRoot &root() const { return root_; }
    [[nodiscard]] SandboxMethod method() const { return method_; }
    [[nodiscard]] const std::string &id() const { return id_; }
    [[nodiscard]] Uid user() const { return user_; }

    // process() is called when it has input.
    void watch(FdRef fd);
    void forget(FdRef fd);

    // The group of what it confines, whether it exists or not; none where the method has not made one.
    [[nodiscard]] virtual std::optional<ControlGroup> group() const = 0;
    virtual void require_confined() {}
    void require_own_namespaces(const std::vector<pid_t> &inside, std::initializer_list<const char *> kinds) const;
    virtual void require_limits(const LimitsPolicy &limits);

private:
    void require_network(const NetworkPolicy &network);

    const AsRoot &root_;
    SandboxMethod method_;
    const MethodTraits &traits_;
    std::string id_;
    Uid user_;
    UniqueFd events_; // epoll
};

// The one place that turns the policy's method into a sandbox, for one session. Throws Failure(unavailable) when this host cannot offer the
// method; never chooses another one instead.
std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user);

// The notice for the user at each start of a session without a sandbox.
std::string unconfined_notice(const SandboxPolicy &policy, const Account &agent);

} // namespace pi_agent

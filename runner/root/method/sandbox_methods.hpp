// The methods: transient units of systemd, bound to a scope that holds the runner, either by themselves or around an engine's container;
// and bubblewrap.
#pragma once

#include "runner/root/kernel/host_facts.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/method/systemd_bus.hpp"

namespace pi_agent {

// --- sandbox.method systemd: a hardened unit. And sandbox.method none: a plain one, which confines its processes only by the policy's
// network and limits. It still has what makes a session: its account, its view of files, its limits and its end.

class SystemdSandbox : public Sandbox {
public:
    // Throws Failure(unavailable) when systemd does not answer.
    SystemdSandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user);

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void kill() override;
    SandboxResult result() override { return bus_.service_result(); }
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override { return bus_.next_look(otherwise); }
    void process() override { bus_.process(); }
    UnitUsage usage() override;
    UniqueFd mount_namespace() override;
    UniqueFd network_namespace() override;
    void start_gate(const GateRoot &root, FdRef channel, FdRef says) override;
    std::string refusal_of_gate(const GateRoot &root) override;
    void end_gate() override;
    void kill_gate() override;
    std::vector<pid_t> processes() override;
    bool is_there() override;
    bool may_live(const std::string &session_id) override;
    [[nodiscard]] std::string name() const override { return "the session's unit " + service_; }
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] bool knows_other_ids(const Account &agent) const override;

protected:
    // Starts the session's unit with these as its standard descriptors; an empty one becomes /dev/null.
    void start_unit(const SandboxPlan &plan, const ServiceStreams &streams);
    [[nodiscard]] std::optional<ControlGroup> group() const override;
    // Throws where the host changes the units of the session in what confines it.
    void require_confined() override;

private:
    [[nodiscard]] std::vector<UnitProperty> properties(const SandboxPlan &plan) const;
    UniqueFd namespace_of_launcher(const char *kind, const char *missing);

    std::string service_;
    SystemdBus bus_;
    SystemdFeatures features_{};
    bool was_taken_in_ = false; // systemd has answered that it starts the session's unit
    bool has_gate_ = false;
};

// --- What the methods share whose container an engine makes in the session's transient unit: telling what is in it, and ending what
// outlives it. Unit, limits, lifetime and record are as in the method systemd.

class ContainerSandbox : public SystemdSandbox {
public:
    using SystemdSandbox::SystemdSandbox;

    // The processes in the container: without the engine itself and what watches for it.
    std::vector<pid_t> processes() override;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    SandboxResult result() override;
    std::string explain(const SandboxResult &result) override;

protected:
    void require_confined() override;
    // Notes as which account the engine must run the launcher: require_confined() asks the kernel. Also makes the engine's place in root's
    // own runtime directory. Call it before anything is started.
    void prepare(const SandboxPlan &plan);
    // `input` becomes its standard input; /dev/null without one.
    void start_engine(const SandboxPlan &plan, FdRef input, const std::vector<std::string> &command);
    [[nodiscard]] std::string engine() const { return to_string(method()); }

private:
    void require_account(const std::vector<pid_t> &inside) const;

    Overheard complaint_; // of the engine
    UniqueFd launcher_;   // once it is there
    std::optional<ExpectedAccount> account_;
    std::optional<Deadline> patience_; // counts from the launcher's end
    bool gave_up_ = false;             // that time was over, and the engine was ended
};

// --- sandbox.method podman: root's podman, which makes one container around the session's view inside of the session's transient unit. Its
// root directory is that view, or the root directory of an image that the policy names, with the view over it.

class PodmanSandbox : public ContainerSandbox {
public:
    // Throws Failure(unavailable), also where podman or what it needs is missing.
    PodmanSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy);
    void start(const SandboxPlan &plan, FdRef launcher) override;

private:
    SandboxPolicy policy_;
    std::optional<PodmanImage> image_; // without its tree
};

// --- sandbox.method docker: a container of root's docker around the session's view, inside of the session's transient unit.

// Hands the launcher its control socket where an engine passes no descriptor on: a socket in the session's own /run at which the launcher
// knocks once. It is gone before anything is handed in, so the agent does not find it.
class LaunchDoor {
public:
    // `session`: its directory, in which only root can make names. `launcher`: the socket to hand out; copied.
    LaunchDoor(const std::string &session, FdRef launcher);
    LaunchDoor(const LaunchDoor &) = delete;
    LaunchDoor &operator=(const LaunchDoor &) = delete;
    ~LaunchDoor() { close(); }

    // Readable when somebody knocks.
    [[nodiscard]] FdRef fd() const { return listener_; }
    // The process that knocks; none where it is gone again, and the door stays.
    [[nodiscard]] UniqueFd next_guest();
    // The first that knocks is the only one: after that there is no door. It must be a process of the agent's account that is among
    // `inside`. Throws Failure(unavailable) when it is not.
    void answer(FdRef guest, Uid agent, const std::vector<pid_t> &inside);

private:
    void close();

    std::string path_;
    UniqueFd listener_;
    UniqueFd launcher_;
};

class DockerSandbox : public ContainerSandbox {
public:
    // Throws Failure, also where docker or what it needs is missing.
    DockerSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy);

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void process() override;

protected:
    void require_limits(const LimitsPolicy &limits) override;

private:
    void sweep_containers();

    DockerHost host_;
    std::optional<Uid> agent_;
    std::unique_ptr<LaunchDoor> door_; // until the launcher has knocked
};

// --- sandbox.method bwrap: bubblewrap, for hosts where systemd is not PID 1 (containers, WSL, chroots).

// All of a session runs in a PID namespace whose first process is bwrap's: when that ends, all of them end (pid_namespaces(7)). It ends
// with bwrap, and bwrap ends with this process (PR_SET_PDEATHSIG(2const)).
class BwrapSandbox final : public Sandbox {
public:
    // Throws Failure(unavailable) when this host has no usable bwrap.
    BwrapSandbox(const AsRoot &root, std::string session_id, Uid user);
    BwrapSandbox(const BwrapSandbox &) = delete;
    BwrapSandbox &operator=(const BwrapSandbox &) = delete;
    ~BwrapSandbox() override;

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void kill() override { stop(); }
    SandboxResult result() override;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    UniqueFd mount_namespace() override;
    std::vector<pid_t> processes() override;
    bool is_there() override;
    bool may_live(const std::string &session_id) override;
    [[nodiscard]] std::string name() const override;
    std::string explain(const SandboxResult &result) override;

protected:
    [[nodiscard]] std::optional<ControlGroup> group() const override { return group_ ? group_->group() : std::nullopt; }
    void require_confined() override;

private:
    void wait_for_info(Deadline deadline);
    void hear_info();
    void hear_end();
    void look_at_the_time();

    std::optional<OwnGroup> group_;
    Overheard info_;
    Overheard complaint_; // bwrap's standard error
    UniqueFd bwrap_;      // pidfd
    UniqueFd first_;      // pidfd of the first process inside
    pid_t bwrap_pid_ = -1;
    pid_t first_pid_ = -1;
    bool reaped_ = false;
    std::optional<Deadline> until_; // limits.runtime
    bool timed_out_ = false;
    int status_ = 0;
    UniqueFd keeper_; // does what is left to do when this process is killed: method_program.hpp
};

} // namespace pi_agent

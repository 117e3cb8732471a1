// Sessions in containers: what engines share, and podman's.
#pragma once

#include "runner/root/kernel/process_account.hpp"
#include "runner/root/method/sandbox_systemd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// --- What the methods have in common whose container an engine makes in the session's transient unit: telling what is in it, and ending
// what outlives it. Unit, limits, lifetime and record are those of the method systemd.

class ContainerSandbox : public SystemdSandbox {
public:
    // `engine`: its name, for messages and seams.
    ContainerSandbox(const AsRoot &root, std::string session_id, Uid user, const char *engine);

    // Those in the container: the engine itself and what watches for it are no part of it.
    std::vector<pid_t> processes() override;
    void require_confined() override;
    [[nodiscard]] FdRef fd() const override;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    SandboxResult result() override;
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] Restrictions restrictions() const override { return Restrictions::all; }

protected:
    // process() is called when it has input.
    void watch(FdRef fd);
    void forget(FdRef fd);
    // Where the engine is to complain; once.
    UniqueFd make_complaint();
    // As whom the engine is to run the launcher: require_confined() asks the kernel. Before anything is started.
    void expect_account(const SandboxPlan &plan);

private:
    void require_account(const std::vector<pid_t> &inside) const;

    std::string engine_;
    UniqueFd complaint_; // what the engine says; a pipe
    UniqueFd events_;    // epoll: of the bus, and of the launcher once it is there
    UniqueFd launcher_;
    std::optional<ExpectedAccount> account_;
    std::optional<Deadline> patience_; // since the launcher's end
    bool gave_up_ = false;             // it was over, and the engine was ended
};

// The host's name as the kernel has it.
std::string host_name();

// --- sandbox.method podman: root's podman, which makes one container around the session's view inside of the session's transient unit.

class PodmanSandbox : public ContainerSandbox {
public:
    // Throws Failure(unavailable), also where podman or what it needs is missing.
    PodmanSandbox(const AsRoot &root, std::string session_id, Uid user);

    void start(const SandboxPlan &plan, FdRef launcher) override;
    [[nodiscard]] std::vector<std::string> own_files() const override;

protected:
    [[nodiscard]] std::vector<UnitProperty> properties(const SandboxPlan &plan, const SystemdFeatures &features) const override;
};

} // namespace pi_agent

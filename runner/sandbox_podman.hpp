// sandbox.method podman: root's podman, which makes one container around the session's view inside of the session's transient unit. Unit,
// limits, lifetime and record are those of the method systemd.
#pragma once

#include "runner/sandbox_systemd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

class PodmanSandbox : public SystemdSandbox {
public:
    // Throws Failure(unavailable), also where podman or what it needs is missing.
    PodmanSandbox(const AsRoot &root, std::string session_id, Uid user);

    void start(const SandboxPlan &plan, FdRef launcher) override;
    // Those in the container: podman itself and what watches for it are no part of it.
    std::vector<pid_t> processes() override;
    void require_confined() override;
    [[nodiscard]] FdRef fd() const override;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::vector<std::string> own_files() const override;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] Restrictions restrictions() const override { return Restrictions::all; }

protected:
    [[nodiscard]] std::vector<UnitProperty> properties(const SandboxPlan &plan, const SystemdFeatures &features) const override;

private:
    void watch(FdRef fd);

    UniqueFd complaint_; // what podman says; a pipe
    UniqueFd events_;    // epoll: of the bus, and of the launcher once it is there
    UniqueFd launcher_;
    std::optional<Deadline> patience_; // since the launcher's end
};

} // namespace pi_agent

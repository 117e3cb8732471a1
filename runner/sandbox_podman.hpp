// sandbox.method podman: root's podman, which makes one container around the session's view inside of the session's transient unit. Unit,
// limits, lifetime and record are those of the method systemd.
#pragma once

#include "runner/sandbox_systemd.hpp"

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
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::vector<std::string> own_files() const override;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] Restrictions restrictions() const override { return Restrictions::all; }

protected:
    [[nodiscard]] std::vector<UnitProperty> properties(const SandboxPlan &plan, const SystemdFeatures &features) const override;

private:
    UniqueFd complaint_; // what podman says; a pipe
};

} // namespace pi_agent

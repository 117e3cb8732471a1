// sandbox.method podman: root's podman, which makes one container around the session's view inside of the session's transient unit.
#pragma once

#include "runner/root/method/sandbox_container.hpp"

#include <string>
#include <vector>

namespace pi_agent {

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

// sandbox.method docker: a container of root's docker around the session's view, inside of the session's transient unit.
#pragma once

#include "runner/root/method/launch_door.hpp"
#include "runner/root/method/preflight.hpp"
#include "runner/root/method/sandbox_container.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

class DockerSandbox : public ContainerSandbox {
public:
    // Borrows root. Throws Failure, also where docker or what it needs is missing.
    DockerSandbox(const AsRoot &root, std::string session_id, Uid user, const SandboxPolicy &policy);

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void process() override;
    void require_limits_enforced(const LimitsPolicy &limits) override;

protected:
    [[nodiscard]] std::vector<UnitProperty> properties(const SandboxPlan &plan, const SystemdFeatures &features) const override;

private:
    void sweep_containers();

    const AsRoot &root_;
    std::string session_id_;
    DockerHost host_;
    std::optional<Uid> agent_;
    std::optional<LaunchDoor> door_; // until the launcher has knocked
};

} // namespace pi_agent

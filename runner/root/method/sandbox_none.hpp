// sandbox.method none: no sandbox. What is left is what makes a session: its account, its view of files, its limits and its end.
#pragma once

#include "runner/root/method/sandbox_systemd.hpp"

namespace pi_agent {

// A plain unit, without anything that confines what runs in it but what the policy says of network and limits.
class UnconfinedSandbox : public SystemdSandbox {
public:
    using SystemdSandbox::SystemdSandbox;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] Restrictions restrictions() const override { return Restrictions::none; }

protected:
    [[nodiscard]] std::vector<UnitProperty> properties(const SandboxPlan &plan, const SystemdFeatures &features) const override;
};

} // namespace pi_agent

// Picks the sandbox that the policy names; the one that confines nothing among them.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/method/sandbox_systemd.hpp"

#include <memory>
#include <string>

namespace pi_agent {

// --- The one place that turns the policy's method into a sandbox.

// For one session. Throws Failure(unavailable) when this host cannot offer the method; never another one in its place.
std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user);

// What the user is told at each start of a session that is not sandboxed.
std::string unconfined_notice(const SandboxPolicy &policy, const Account &agent);

// Once the launcher is there, before anything of the agent's is sent in: what the kernel says of it. Throws Failure(unavailable).
void require_enforced(Sandbox &sandbox, const Policy &policy);

// --- sandbox.method none: no sandbox. What is left is what makes a session: its account, its view of files, its limits and its end.

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

// Picks the sandbox that the policy names; the one that confines nothing among them.
#include "runner/root/method/sandbox_methods.hpp"

#include "common/base/error.hpp"
#include "runner/root/method/sandbox_bwrap.hpp"
#include "runner/root/method/sandbox_container.hpp"
#include "runner/root/method/sandbox_docker.hpp"
#include "runner/root/method/sandbox_systemd.hpp"

namespace pi_agent {

std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user)
{
    switch (policy.method) {
    case SandboxMethod::systemd:
        return std::make_unique<SystemdSandbox>(root, session_id, user);
    case SandboxMethod::bwrap:
        return std::make_unique<BwrapSandbox>(root, session_id, user);
    case SandboxMethod::podman:
        return std::make_unique<PodmanSandbox>(root, session_id, user);
    case SandboxMethod::docker:
        return std::make_unique<DockerSandbox>(root, session_id, user, policy);
    case SandboxMethod::none:
        return std::make_unique<UnconfinedSandbox>(root, session_id, user);
    }
    throw Failure(ExitStatus::internal, "a sandbox method without a sandbox");
}

std::string unconfined_notice(const SandboxPolicy &policy, const Account &agent)
{
    return "NOT SANDBOXED: the policy says sandbox.method: none (" + to_string(policy.where) + "). The agent runs as " + agent.name +
           ", and nothing but the rights of that account keeps it from this host's processes, devices and services";
}

void require_enforced(Sandbox &sandbox, const Policy &policy)
{
    sandbox.require_confined();
    sandbox.require_network_enforced(policy.network);
    sandbox.require_limits_enforced(policy.limits);
}

std::vector<std::string> UnconfinedSandbox::own_namespaces(const NetworkPolicy &network) const
{
    if (network.mode == NetworkMode::none) return {"mnt", "net"};
    return {"mnt"};
}

std::vector<UnitProperty> UnconfinedSandbox::properties(const SandboxPlan &plan, const SystemdFeatures &features) const
{
    return plain_service_properties(plan, features);
}

} // namespace pi_agent

// The unit of a session that is not sandboxed.
#include "runner/root/method/sandbox_none.hpp"

namespace pi_agent {

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

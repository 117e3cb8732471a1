// The unit of a session that is not sandboxed.
#include "runner/sandbox_none.hpp"

namespace pi_agent {

std::vector<std::string> UnconfinedSandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = {"mnt"};
    if (network.mode == NetworkMode::none) kinds.emplace_back("net");
    return kinds;
}

std::vector<UnitProperty> UnconfinedSandbox::properties(const SandboxPlan &plan, const SystemdFeatures &features) const
{
    return plain_service_properties(plan, features);
}

} // namespace pi_agent

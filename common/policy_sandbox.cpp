// The section `sandbox`: an explicit method, and what each cannot do.
#include "common/policy_sandbox.hpp"

#include "common/policy_paths.hpp"

#include <string>

namespace pi_agent {

void read_sandbox(const PolicyValue &section, Policy &policy, Problems &problems)
{
    const auto read_method = [&](const PolicyValue &value) {
        const auto choice = read_choice(value, problems);
        policy.sandbox.where = value.where;
        if (!choice) return;
        for (const auto method : {SandboxMethod::systemd, SandboxMethod::bwrap, SandboxMethod::podman, SandboxMethod::none})
            if (*choice == to_string(method)) policy.sandbox.method = method;
    };
    policy.sandbox.where = section.where;
    read_section(section, {{"method", read_method}}, problems);
}

void refuse_what_method_cannot(const Policy &policy, Problems &problems)
{
    if (policy.sandbox.method != SandboxMethod::bwrap) return;
    const auto mode = policy.network.mode;
    if (mode == NetworkMode::loopback || mode == NetworkMode::listed)
        problems.add(policy.network.where, "network",
                     "sandbox.method bwrap (" + to_string(policy.sandbox.where) +
                         ") cannot filter addresses: it has the host's network, or one of the session's own with nothing in it",
                     "use 'full' or 'none', or the method systemd");
}

} // namespace pi_agent

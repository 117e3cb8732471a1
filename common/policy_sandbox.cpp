// The section `sandbox`: an explicit method, and what each cannot do.
#include "common/policy_sandbox.hpp"

#include "common/policy_limits.hpp"
#include "common/policy_paths.hpp"

#include <string>

namespace pi_agent {

namespace {

// The number of sessions is counted by the runner; for all else there has to be a unit.
void refuse_limits(const Policy &policy, Problems &problems)
{
    const auto refuse = [&](const char *key, const std::optional<SaidLimit> &said) {
        if (said)
            problems.add(said->where, std::string("limits.") + key,
                         "only sandbox.method systemd can hold a session to this (" + to_string(policy.sandbox.where) + " says another)",
                         "remove the key, or use the method systemd");
    };
    refuse("memory", said_memory(policy.limits));
    refuse("tasks", policy.limits.tasks);
    refuse("cpu", policy.limits.cpu);
    refuse("runtime", policy.limits.runtime);
}

} // namespace

void read_sandbox(const PolicyValue &section, Policy &policy, Problems &problems)
{
    const auto read_method = [&](const PolicyValue &value) {
        const auto choice = read_choice(value, {"systemd", "bwrap"}, {"podman", "docker", "none"}, problems);
        policy.sandbox.where = value.where;
        if (choice) policy.sandbox.method = *choice == "bwrap" ? SandboxMethod::bwrap : SandboxMethod::systemd;
    };
    policy.sandbox.where = section.where;
    read_section(section, {{"method", read_method}}, problems);
}

void refuse_what_method_cannot(const Policy &policy, Problems &problems)
{
    if (policy.sandbox.method != SandboxMethod::systemd) refuse_limits(policy, problems);
    const auto mode = policy.network.mode;
    if (policy.sandbox.method == SandboxMethod::bwrap && (mode == NetworkMode::loopback || mode == NetworkMode::listed))
        problems.add(policy.network.where, "network",
                     "sandbox.method bwrap (" + to_string(policy.sandbox.where) +
                         ") cannot filter addresses: it has the host's network, or one of the session's own with nothing in it",
                     "use 'full' or 'none', or the method systemd");
}

} // namespace pi_agent

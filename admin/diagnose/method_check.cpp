// Whether sandbox.method can work on this host, and hold sessions to the policy's network: what each start looks at, without a start.
#include "admin/diagnose/host_checks.hpp"

#include "common/base/error.hpp"
#include "runner/plan/limits.hpp"
#include "runner/root/kernel/enforcement.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/method/systemd_bus.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr const char *method_key = "sandbox.method";

bool check_programs(const SandboxPolicy &sandbox, Problems &problems)
{
    bool all_there = true;
    for (const auto &program : programs_of(sandbox.method)) {
        const bool is_there = report_failure(sandbox.where, method_key, "", problems, [&] {
            if (const auto problem = problem_of_program(sandbox.method, program)) throw Failure(ExitStatus::unavailable, *problem);
        });
        all_there = all_there && is_there;
    }
    return all_there;
}

void require_running(const AsRoot &root, const SandboxPolicy &sandbox)
{
    if (has_unit(sandbox.method)) systemd_features(SystemdBus::version_for_anybody());
    if (sandbox.method == SandboxMethod::bwrap) require_bwrap(root);
    if (sandbox.method == SandboxMethod::docker) require_docker(root, sandbox);
    if (sandbox.method == SandboxMethod::podman) require_podman(root, sandbox);
}

} // namespace

void check_method(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified)
{
    const auto &sandbox = policy.sandbox;
    if (problems.has_within("sandbox")) return; // the wanted method is not known
    const bool has_programs = check_programs(sandbox, problems);
    if (means == Means::installed || !has_programs) return;
    if (!observer.root()) {
        unverified.push_back(fmt::format("{} ({}): only root can ask for all that it needs", method_key, to_string(sandbox.method)));
        return;
    }
    const auto &root = *observer.root();
    const bool runs = report_failure(sandbox.where, method_key, "", problems, [&] { require_running(root, sandbox); });
    if (!runs || problems.has_within("network")) return;
    report_failure(policy.network.where, "network", "", problems, [&] {
        if (sandbox.method == SandboxMethod::bwrap) require_bwrap_network(root, policy.network);
        require_enforceable(root, policy.network, has_unit(sandbox.method));
    });
}

} // namespace pi_agent

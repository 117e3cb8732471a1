// Asking what a start asks, before there is one.
#include "admin/diagnose/faults.hpp"

#include "common/base/error.hpp"
#include "runner/plan/limits.hpp"
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
        std::optional<std::string> problem;
        try {
            problem = problem_of_program(sandbox.method, program);
        } catch (const Failure &failure) {
            problem = failure.what();
        }
        if (problem) problems.add(sandbox.where, method_key, *problem, "");
        all_there = all_there && !problem;
    }
    return all_there;
}

void require_running(const AsRoot &root, const SandboxPolicy &sandbox)
{
    if (has_unit(sandbox.method)) systemd_features(SystemdBus::version_for_anybody());
    if (sandbox.method == SandboxMethod::bwrap) require_bwrap(root);
    if (sandbox.method == SandboxMethod::docker) require_docker(root, sandbox);
}

} // namespace

void check_method(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified)
{
    const auto &sandbox = policy.sandbox;
    if (problems.has_within("sandbox")) return; // which method it is to be is not known
    const bool has_programs = check_programs(sandbox, problems);
    if (means == Means::installed || !has_programs) return;
    if (!observer.root()) {
        unverified.push_back(fmt::format("{} ({}): only root can ask for all that it needs", method_key, to_string(sandbox.method)));
        return;
    }
    try {
        require_running(*observer.root(), sandbox);
    } catch (const Failure &failure) {
        problems.add(sandbox.where, method_key, failure.what(), "");
    }
    if (sandbox.method != SandboxMethod::bwrap || problems.has_within("network")) return;
    try {
        require_bwrap_network(*observer.root(), policy.network);
    } catch (const Failure &failure) {
        problems.add(policy.network.where, "network", failure.what(), "");
    }
}

} // namespace pi_agent

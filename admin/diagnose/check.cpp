// Everything that is wrong with a policy, in one report.
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/dry_start.hpp"
#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/host_checks.hpp"
#include "admin/host/unfinished_apply.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_values.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/kernel/host_facts.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace pi_agent {

namespace {

bool is_installed_policy(const std::string &path)
{
    return path == policy_path || is_same_file(path, policy_path); // by its name if it does not exist, or this process may not look at it
}

std::vector<Diagnostic> warnings_of_text(const Policy &policy)
{
    auto warnings = find_exposed_secrets(policy);
    for (auto &odd : find_odd_host_rules(policy))
        warnings.push_back(std::move(odd));
    for (auto &odd : find_odd_patterns(policy))
        warnings.push_back(std::move(odd));
    if (policy.sandbox.method == SandboxMethod::none)
        warnings.push_back({policy.sandbox.where, "sandbox.method",
                            "is 'none', so sessions are not sandboxed: an agent reaches this host's processes, devices and services as its "
                            "account does",
                            "choose systemd, bwrap or podman, unless the host itself is what confines agents (docs/platforms/methods.md)"});
    for (auto &idle : find_idle_placement(policy))
        warnings.push_back(std::move(idle));
    return warnings;
}

// What only root can see of an apply that was cut short.
void warn_of_unfinished(const Observer &observer, CheckReport &report)
{
    try {
        if (!observer.root() || !read_unfinished(*observer.root())) return;
    } catch (const Failure &failure) { // a damaged note: that keeps nothing else from being told
        report.warnings.push_back({{}, "", failure.what(), ""});
        return;
    }
    report.warnings.push_back({{},
                               "",
                               "a change of this host (apply, rollback or edit) has not finished: it was cut short, or runs just now",
                               "'sudo pi-agentctl apply' finishes it, or goes back"});
}

PolicyReading read_for_check(const std::optional<std::string> &draft)
{
    if (!draft || is_installed_policy(*draft)) return read_policy_as_far_as_possible(policy_path);
    const std::string holder = parent_of(std::filesystem::absolute(*draft).lexically_normal());
    const bool is_users = holder == directory_of_users(policy_path);
    if (is_users || holder == directory_of_parts(policy_path))
        throw Failure(ExitStatus::usage, escape_for_display(*draft) +
                                             " is a part of the installed policy, which 'pi-agentctl check' checks as a whole; 'sudo "
                                             "pi-agentctl edit " +
                                             (is_users ? "users.d/" : "") + "NAME.yaml' tries a draft of one file");
    return read_policy_as_far_as_possible({{escape_for_display(*draft), read_draft(*draft)}});
}

} // namespace

std::vector<Diagnostic> find_warnings(const Policy &policy)
{
    auto warnings = warnings_of_text(policy);
    if (!policy.wrapper.hide_direct_binary && !is_within(policy.agent.binary, "/nix") && can_be_run_by_all(policy.agent.binary))
        warnings.push_back({policy.wrapper.where, "wrapper.hide_direct_binary",
                            "is false, so everybody on this host can run " + policy.agent.binary + " without a sandbox",
                            "remove the key, and run: sudo pi-agentctl apply"});
    for (auto &idle : find_idle_disk_limits(policy))
        if (idle.choice != WithoutQuota::refuse) warnings.push_back(std::move(idle.told)); // an error otherwise
    for (auto &missing : find_missing_cluster(policy))
        warnings.push_back(std::move(missing));
    for (const auto &refused : {find_refused_starts(policy), find_possible_refusals(policy)})
        warnings.insert(warnings.end(), refused.begin(), refused.end());
    for (const auto &missing : missing_search_tools())
        warnings.push_back({{}, "", name_package(missing), ""});
    return warnings;
}

void warn(const std::vector<Diagnostic> &found, std::ostream &warnings)
{
    warnings << show_problems(found, "pi-agentctl: warning: ", read_again);
}

std::vector<Diagnostic> find_mistakes(const PolicyReading &reading, const Observer &observer, Means means)
{
    Problems problems;
    problems.add_all(reading.problems);
    if (reading.complete) check_host(reading.policy, observer, means, problems);
    return problems.all();
}

CheckReport check_policy(const std::optional<std::string> &draft, CheckScope scope)
{
    const auto reading = read_for_check(draft);
    CheckReport report;
    report.entries = reading.policy.users.size();
    report.enabled = reading.policy.wrapper.enable;
    report.missing = reading.missing;
    Problems problems;
    problems.add_all(reading.problems);
    if (scope == CheckScope::policy_only) {
        report.warnings = warnings_of_text(reading.policy);
        report.unverified = {"this host: --policy-only says not to look at it"};
        check_host_rules(reading.policy, problems);
    } else if (!reading.complete) { // that file may hold what is missing
        report.warnings = warnings_of_text(reading.policy);
        report.unverified = {"what the rest means together, and this host: a file of the policy cannot be read yet"};
    } else {
        report.warnings = find_warnings(reading.policy);
        if (!draft || is_installed_policy(*draft)) check_installed_files(problems);
        const auto observer = Observer::self();
        warn_of_unfinished(observer, report);
        auto found = check_host(reading.policy, observer, Means::running, problems);
        report.unverified = std::move(found.unverified);
        report.warnings.insert(report.warnings.end(), found.warnings.begin(), found.warnings.end());
        report.idle = idle_defaults(reading.policy);
    }
    report.errors = problems.all();
    return report;
}

std::string to_text(const CheckReport &report)
{
    auto text = fmt::format("policy is valid: {} {} authorised{}\n", report.entries, report.entries == 1 ? "entry" : "entries",
                            report.enabled ? "" : ", but the wrapper is disabled: nobody can start pi");
    for (const auto &unverified : report.unverified)
        text += "not verified: " + unverified + '\n';
    return text + report.idle;
}

nlohmann::json to_json(const CheckReport &report)
{
    const auto list = [](const std::vector<Diagnostic> &diagnostics) {
        auto entries = nlohmann::json::array();
        for (const auto &diagnostic : diagnostics)
            entries.push_back(to_json(diagnostic));
        return entries;
    };
    return {{"valid", report.errors.empty()},
            {"errors", list(report.errors)},
            {"warnings", list(report.warnings)},
            {"unverified", report.unverified}};
}

void run_check(const std::optional<std::string> &draft, CheckScope scope, bool json, std::ostream &out, std::ostream &warnings)
{
    const auto report = check_policy(draft, scope);
    const auto kind = report.missing ? FailureKind::no_policy : FailureKind::invalid_policy;
    if (json) {
        print_json(to_json(report), out);
        if (!report.errors.empty()) throw Failure(kind, "the policy has errors, or this host does not fit it");
        return;
    }
    warn(report.warnings, warnings);
    if (report.errors.empty()) {
        out << to_text(report);
        return;
    }
    for (const auto &unverified : report.unverified)
        warnings << "pi-agentctl: not verified: " << unverified << '\n';
    throw PolicyError(report.errors, kind);
}

} // namespace pi_agent

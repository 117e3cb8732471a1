// Explaining, with the same functions that decide.
#include "admin/diagnose/explain.hpp"

#include "admin/diagnose/doctor.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/problems.hpp"
#include "common/decide/decision.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/kernel/installed_tools.hpp"
#include "runner/root/method/systemd_bus.hpp"
#include "runner/root/view/root_tree.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pi_agent {

namespace {

ExplainedDirectory explain_directory(const Account &user, const AccessRules &rules, const std::vector<ExplainedRoot> &roots,
                                     const Finding &directory, const std::string &asked)
{
    if (directory.kind == Finding::Kind::unknown) return {asked, std::nullopt, directory.text, {}};
    if (directory.kind == Finding::Kind::unusable) return {asked, false, directory.text, {}};
    std::vector<RootCandidate> candidates;
    for (const auto &root : roots) { // as a start does: one that cannot be used refuses all of them
        if (root.finding.kind == Finding::Kind::unusable)
            return {directory.text, false, to_string(unusable_root(rules, root.granted.spec.where, root.finding.text)), {}};
        if (root.finding.kind == Finding::Kind::usable)
            candidates.push_back({root.finding.text, root.granted.by_group, root.granted.spec.where});
    }
    const auto decision = decide(user, rules, candidates, directory.text);
    if (const auto *refused = std::get_if<Refused>(&decision)) return {directory.text, false, refused->text, {}};
    const auto &root = candidates[std::get<Allowed>(decision).root];
    for (const auto &shown : roots) {
        if (shown.finding.text != root.path) continue;
        if (shown.finding.mount != directory.mount) return {directory.text, false, on_other_mount(root, directory.text).text, {}};
        if (!shown.finding.file_system_problem.empty()) return {directory.text, false, shown.finding.file_system_problem, {}};
    }
    return {directory.text, true, root.path, root.where};
}

} // namespace

Account account_to_explain(const std::optional<std::string> &name, const Observer &observer)
{
    if (!name && observer.root()) throw Failure(ExitStatus::usage, "root is no user of pi; say whose access to explain: --user NAME");
    const auto account = name ? find_account(*name) : find_account(Uid(::geteuid()));
    if (!account)
        throw Failure(ExitStatus::usage, "there is no user " + quote(name.value_or(std::to_string(::geteuid()))) + " on this host");
    return *account;
}

Explanation explain(const Policy &policy, const std::string &policy_file, const Observer &observer, const Account &user,
                    const std::optional<std::string> &directory)
{
    Explanation explanation{user,
                            policy_file,
                            policy.wrapper.enable,
                            policy.wrapper.where,
                            find_access_rules(policy, user, policy_file),
                            {},
                            std::nullopt,
                            {},
                            false,
                            policy.agent.state_dir + "/users/" + user.name + "/home",
                            policy.agent.binary,
                            {},
                            policy.sandbox,
                            policy.git_identity,
                            policy.box_notes,
                            policy.scratch,
                            policy.view,
                            policy.view_paths,
                            {},
                            policy.network,
                            policy.projects};
    const auto *rules = std::get_if<AccessRules>(&explanation.access);
    if (rules == nullptr) return explanation;
    auto findings = observer.resolve_roots(*rules, user);
    for (std::size_t index = 0; index < findings.size(); ++index)
        explanation.roots.push_back({rules->roots[index], std::move(findings[index])});
    if (observer.root()) {
        try {
            explanation.shown = plan_host_view(policy);
        } catch (const Failure &failure) { // a part of the explanation
            explanation.shown = failure;
        }
    }
    explanation.environment = explain_environment(policy, *rules, observer, user, explanation.home);
    explanation.missing_tools = missing_search_tools();
    explanation.limits = explain_limits(policy);
    explanation.toolchains = explain_toolchains(policy.toolchains, observer, user);
    explanation.account_exists = find_account(rules->agent_account).has_value();
    if (directory) {
        const auto finding = observer.resolve_directory(*directory, user);
        explanation.directory = explain_directory(user, *rules, explanation.roots, finding, *directory);
    }
    return explanation;
}

void run_explain(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out)
{
    const auto observer = Observer::self();
    if (observer.root() && !user_name && !directory) {
        const auto lines = list_authorised(load_policy(policy_path), policy_path);
        if (json) return print_json(to_json(lines), out);
        out << to_text(lines);
        return;
    }
    const auto user = account_to_explain(user_name, observer);
    const auto policy = load_policy(policy_path);
    // The caller's own directory says nothing about another user.
    const auto asked = directory || user_name ? directory : std::optional<std::string>(".");
    auto explanation = explain(policy, policy_path, observer, user, asked);
    try {
        if (has_unit(policy.sandbox.method)) explanation.systemd = systemd_features(SystemdBus::version_for_anybody());
    } catch (const Failure &failure) { // a part of the explanation
        explanation.systemd = failure;
    }
    if (json) return print_json(to_json(explanation), out);
    out << to_text(explanation);
}

} // namespace pi_agent

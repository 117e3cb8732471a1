// Explains with the same functions that decide.
#include "admin/diagnose/explain.hpp"

#include "admin/diagnose/dry_start.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/decide/effective.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/root/kernel/host_facts.hpp"
#include "runner/root/method/systemd_bus.hpp"
#include "runner/root/view/root_tree.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pi_agent {

namespace {

// `own` becomes the policy as it holds in the directory, if a start there is allowed.
ExplainedDirectory explain_directory(const Account &user, const AccessRules &rules, const std::vector<ExplainedRoot> &roots,
                                     const Finding &directory, const std::string &asked, Policy &own)
{
    if (directory.kind == Finding::Kind::unknown) return {asked, std::nullopt, directory.text, {}};
    if (directory.kind == Finding::Kind::unusable) return {asked, false, directory.text, {}};
    std::vector<Finding> findings;
    for (const auto &root : roots)
        findings.push_back(root.finding);
    try {
        auto start = dry_start(user, rules, own, findings, directory);
        own = std::move(start.policy);
        return {directory.text, true, start.root.path, start.root.where};
    } catch (const Failure &failure) {
        return {directory.text, false, failure.what(), {}};
    }
}

// The users who may start pi on this host: all that the policy authorises today. It does not look at roots, as `explain --user` does.
struct OverviewLine {
    std::string user;
    std::optional<AccessRules> rules = {};
    bool agent_exists = false;
    std::string problem = {}; // why this user cannot start pi whatever the roots are, or ""

    [[nodiscard]] std::string entry() const { return rules ? rules->entry : ""; }
    [[nodiscard]] std::string where() const { return rules ? to_string(rules->where) : ""; }
    [[nodiscard]] std::string agent() const { return rules ? rules->agent_account : ""; }
    [[nodiscard]] std::vector<std::string> roots() const
    {
        std::vector<std::string> roots; // as the policy writes them
        for (std::size_t index = 0; rules && index < rules->roots.size(); ++index)
            roots.push_back(rules->roots[index].spec.text);
        return roots;
    }
};

// `of_all` is the policy without users.
OverviewLine line_of(const Policy &policy, const Policy &of_all, const std::string &name)
{
    OverviewLine line{name};
    const auto user = find_account(name);
    if (!user) return {name, {}, false, "this host has no such user"};
    try {
        auto access = find_access_rules(policy, *user, policy_path);
        if (const auto *refused = std::get_if<NotAuthorised>(&access)) return {name, {}, false, refused->text};
        line.rules = std::get<AccessRules>(std::move(access));
        line.agent_exists = find_account(line.agent()).has_value();
        if (!line.agent_exists) line.problem = "this host has no account " + line.agent() + "; run 'sudo pi-agentctl apply'";
        const auto refused = refused_starts(of_all, *user, *line.rules);
        if (!refused.empty() && refused.size() == line.rules->roots.size()) line.problem = refused.front().text();
    } catch (const PolicyError &error) { // their groups contradict each other, or their own entry
        line.problem = error.what();
    }
    return line;
}

std::string to_text(const std::vector<OverviewLine> &lines)
{
    std::vector<Row> rows;
    std::string problems;
    for (const auto &line : lines) {
        std::string roots;
        for (const auto &root : line.roots())
            roots += (roots.empty() ? "" : " ") + escape_for_display(root);
        rows.push_back({line.user, line.entry(), line.where(), line.agent(), roots});
        if (!line.problem.empty()) problems += line.user + " cannot start pi: " + line.problem + "\n";
    }
    return to_table({"USER", "ENTRY", "IN", "AGENT", "ROOTS"}, rows) + problems;
}

nlohmann::json to_json(const std::vector<OverviewLine> &lines)
{
    auto list = nlohmann::json::array();
    for (const auto &line : lines)
        list.push_back({{"user", line.user},
                        {"entry", text_or_null(line.entry())},
                        {"where", text_or_null(line.where())},
                        {"agent", text_or_null(line.agent())},
                        {"agent_exists", line.agent_exists},
                        {"roots", line.roots()},
                        {"problem", text_or_null(line.problem)}});
    return {{"users", list}};
}

} // namespace

Account account_to_explain(const std::optional<std::string> &name, const Observer &observer)
{
    if (!name && observer.root()) throw Failure(ExitStatus::usage, "root cannot run the agent; say whose access to explain: --user NAME");
    const auto account = name ? find_account(*name) : find_account(Uid(::geteuid()));
    if (!account) throw Failure(ExitStatus::usage, "this host has no user " + quote(name.value_or(std::to_string(::geteuid()))));
    return *account;
}

Explanation explain(const Policy &policy, const std::string &policy_file, const Observer &observer, const Account &user,
                    const std::optional<std::string> &directory)
{
    Explanation explanation{user, policy, policy_file, find_access_rules(policy, user, policy_file),
                            agents_home(policy.agent.state_dir, short_name(user))};
    const auto *rules = std::get_if<AccessRules>(&explanation.access);
    if (rules == nullptr) return explanation;
    auto &own = explanation.policy; // what holds for this user, and from below on in this directory
    own = policy_for(policy, *rules);
    auto findings = observer.resolve_roots(*rules, user);
    for (std::size_t index = 0; index < findings.size(); ++index)
        explanation.roots.push_back({rules->roots[index], std::move(findings[index])});
    if (directory) {
        const auto finding = observer.resolve_directory(*directory, user);
        explanation.directory = explain_directory(user, *rules, explanation.roots, finding, *directory, own);
    }
    if (observer.root()) {
        try {
            explanation.shown = plan_host_view(own);
        } catch (const Failure &failure) { // a part of the explanation
            explanation.shown = failure;
        }
    }
    explanation.environment = explain_environment(own, *rules, observer, user, explanation.home);
    explanation.missing_tools = missing_search_tools();
    explanation.limits = explain_limits(own.limits);
    explanation.limits.disk = find_disk_problem(own);
    explanation.toolchains = explain_toolchains(own.toolchains, observer, user);
    explanation.account_exists = find_account(rules->agent_account).has_value();
    return explanation;
}

void run_explain(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out)
{
    const auto observer = Observer::self();
    if (observer.root() && !user_name && !directory) {
        const auto policy = load_policy(policy_path);
        Policy of_all = policy;
        of_all.users.clear();
        std::vector<OverviewLine> lines; // members of groups count as they are today
        for (const auto &name : users_of(policy))
            lines.push_back(line_of(policy, of_all, name));
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

// Holds against this host what users, groups and roots say for their own sessions.
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/host_checks.hpp"
#include "admin/host/accounts.hpp"
#include "common/base/error.hpp"
#include "common/decide/effective.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/view/root_tree.hpp"

#include <set>

namespace pi_agent {

namespace {

// One level, in the names of the policy around it.
class LevelCheck {
public:
    LevelCheck(Policy &around, const Rules &rules, std::string whose, Problems &problems)
        : around_(around), rules_(rules), whose_(std::move(whose)), problems_(problems)
    {
    }

    void look_as_root(const AsRoot &root, Means means)
    {
        for (const auto &file : rules_.env_files.value_or(std::vector<PolicyPath>()))
            report(file.where, "env_files", [&] { read_managed_env_files({file}); });
        for (const auto &shown : rules_.view_paths.value_or(std::vector<PolicyPath>()))
            report(shown.where, "view_paths", [&] { require_can_be_shown(around_, shown); });
        if (!problems_.has(whose_ + "view_paths")) look_at_path();
        const bool asks = means == Means::running && around_.sandbox.method == SandboxMethod::bwrap && rules_.network;
        if (asks) report(rules_.network->where, "network", [&] { require_bwrap_network(root, *rules_.network); });
    }

private:
    // In what these sessions see: the view paths are theirs, too.
    void look_at_path()
    {
        if (!rules_.path) return;
        const auto view_paths = around_.view_paths;
        const auto path = around_.path;
        if (rules_.view_paths) around_.view_paths = *rules_.view_paths;
        for (const auto &directory : *rules_.path) {
            around_.path = {directory};
            report(directory.where, "path", [&] { plan_host_view(around_); });
        }
        around_.view_paths = view_paths;
        around_.path = path;
    }

    template <typename Task>
    void report(const Position &where, const char *key, const Task &task)
    {
        report_failure(where, whose_ + key, correct_list, problems_, task);
    }

    Policy &around_;
    const Rules &rules_;
    std::string whose_;
    Problems &problems_;
};

// Members of several groups that say something for sessions.
std::set<std::string> members_of_several(const Policy &policy)
{
    std::set<std::string> seen;
    std::set<std::string> several;
    for (const auto &entry : policy.users) {
        if (!entry.is_group || (!entry.rules && entry.env.empty())) continue;
        for (const auto &member : group_members(entry.name))
            if (!seen.insert(member).second) several.insert(member);
    }
    return several;
}

} // namespace

std::vector<Diagnostic> find_contradicting_groups(const Policy &policy)
{
    std::vector<Diagnostic> found;
    Policy of_all = policy;
    of_all.users.clear();
    for (const auto &member : members_of_several(policy)) {
        const auto user = find_account(member);
        if (!user) continue;
        try {
            const auto access = find_access_rules(policy, *user, policy_path);
            if (const auto *rules = std::get_if<AccessRules>(&access)) policy_for(of_all, *rules);
        } catch (const PolicyError &error) {
            for (auto diagnostic : error.diagnostics()) {
                diagnostic.problem += ", so " + member + " cannot start pi";
                found.push_back(std::move(diagnostic));
            }
        }
    }
    return found;
}

void check_levels(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified)
{
    std::optional<Policy> around; // copied once, and only where there is something to look at
    const auto check = [&](const RulesPtr &rules, const std::string &whose) {
        if (!rules) return;
        check_limits(rules->limits, whose, problems);
        const bool names_network = rules->network && policy.sandbox.method == SandboxMethod::bwrap;
        if (!rules->env_files && !rules->view_paths && !rules->path && !names_network) return;
        if (!observer.root()) {
            unverified.push_back(whose + "*: only root can look at the files and directories that it names");
            return;
        }
        if (!around) around = policy;
        LevelCheck(*around, *rules, whose, problems).look_as_root(*observer.root(), means);
    };
    for (const auto &entry : policy.users) {
        check(entry.rules, entry_key(entry) + ".");
        for (const auto &root : entry.roots)
            check(root.rules, root_key(entry, root) + ".");
    }
}

} // namespace pi_agent

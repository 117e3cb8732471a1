// Holds against this host what users, groups and roots say for their own sessions.
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/host_checks.hpp"
#include "admin/host/accounts.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"
#include "common/policy/policy_levels.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/kernel/enforcement.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/view/root_tree.hpp"

#include <algorithm>
#include <vector>

namespace pi_agent {

namespace {

// What groups say between a level and the whole policy: for a user those that they are in, for a group the others, which its members may
// be in.
struct SaidByGroups {
    std::vector<PolicyPath> view_paths; // for a user
    bool path = false;
};

SaidByGroups find_said_by_groups(const Policy &policy, const UserEntry &entry)
{
    SaidByGroups said;
    const Rules &own = rules_of(entry.rules);
    if (!own.path && !own.view_paths) return said; // a look-up may be slow
    const auto user = entry.is_group ? std::nullopt : find_account(entry.name);
    for (const auto &[group, gid] : user ? find_entries(policy, *user).groups : std::vector<CallersEntries::OfGroup>()) {
        const auto more = rules_of(group->rules).view_paths.value_or(std::vector<PolicyPath>());
        said.view_paths.insert(said.view_paths.end(), more.begin(), more.end());
        said.path = said.path || rules_of(group->rules).path;
    }
    if (entry.is_group)
        said.path = std::any_of(policy.users.begin(), policy.users.end(),
                                [](const UserEntry &other) { return other.is_group && rules_of(other.rules).path; });
    return said;
}

// One level, in the names of the policy around it.
class LevelCheck {
public:
    LevelCheck(Policy &around, const Rules &rules, std::string whose, Problems &problems)
        : around_(around), rules_(rules), whose_(std::move(whose)), problems_(problems)
    {
    }

    void look_as_root(const AsRoot &root, Means means, const SaidByGroups &groups)
    {
        for (const auto &file : rules_.env_files.value_or(std::vector<PolicyPath>()))
            report(file.where, "env_files", [&] { read_managed_env_files({file}); });
        for (const auto &shown : rules_.view_paths.value_or(std::vector<PolicyPath>()))
            report(shown.where, "view_paths", [&] { require_can_be_shown(around_, shown); });
        if (!problems_.has(whose_ + "view_paths") && !problems_.has("agent") && !problems_.has("agent.binary")) look_at_path(groups);
        if (means == Means::running && rules_.network && !problems_.has_within("sandbox")) look_at_network(root, *rules_.network);
    }

private:
    // In what these sessions see: the view paths are theirs, too. They can take away what a path of the whole policy is in.
    void look_at_path(const SaidByGroups &groups)
    {
        const bool is_own = rules_.path.has_value();
        if (!is_own && (!rules_.view_paths || groups.path || problems_.has("path"))) return;
        const auto view_paths = around_.view_paths;
        const auto path = around_.path;
        if (rules_.view_paths || !groups.view_paths.empty()) around_.view_paths = rules_.view_paths.value_or(groups.view_paths);
        for (const auto &directory : is_own ? *rules_.path : path) {
            around_.path = {directory};
            report(is_own ? directory.where : rules_.places.at("view_paths").where, is_own ? "path" : "view_paths",
                   [&] { plan_host_view(around_); });
        }
        around_.view_paths = view_paths;
        around_.path = path;
    }

    void look_at_network(const AsRoot &root, const NetworkPolicy &network)
    {
        const auto method = around_.sandbox.method;
        report_failure(network.where, whose_ + "network", "", problems_, [&] {
            if (method == SandboxMethod::bwrap) require_bwrap_network(root, network);
            require_enforceable(root, network, has_unit(method));
        });
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

} // namespace

void check_levels(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified)
{
    std::optional<Policy> around; // copied once, and only where there is something to look at
    const auto check = [&](const RulesPtr &rules, const std::string &whose, const SaidByGroups &groups) {
        if (!rules) return;
        check_limits(rules->limits, whose, problems);
        const bool names_files = rules->env_files || rules->view_paths || rules->path;
        if (!observer.root() && names_files)
            unverified.push_back(whose + "*: only root can look at the files and directories that it names");
        if (!observer.root() || (!names_files && !rules->network)) return;
        if (!around) around = policy;
        LevelCheck(*around, *rules, whose, problems).look_as_root(*observer.root(), means, groups);
    };
    for (const auto &entry : policy.users) {
        check(entry.rules, entry_key(entry) + ".", observer.root() ? find_said_by_groups(policy, entry) : SaidByGroups());
        for (const auto &root : entry.roots)
            check(root.rules, root_key(entry, root) + ".", {});
    }
}

} // namespace pi_agent

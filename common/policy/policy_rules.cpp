// Checks which users may use pi, which accounts serve them, and what the method cannot honour.
#include "common/policy/policy_sections.hpp"

#include "common/host/account.hpp"

namespace pi_agent {

namespace {

bool several_users_possible(const Policy &policy, const UserFiles &files) noexcept
{
    return files.are_possible || policy.users.size() > 1 ||
           std::any_of(policy.users.begin(), policy.users.end(), [](const UserEntry &entry) { return entry.is_group; });
}

void check_accounts_said(const Policy &policy, const UserFiles &files, Problems &problems)
{
    if (policy.agent.accounts != Accounts::unspecified || !several_users_possible(policy, files)) return;
    if (problems.has("agent") || problems.has("agent.accounts")) return; // the policy says it, in a form that was not understood
    const char *why = several_users_possible(policy, {}) ? "" : " in users.d";
    problems.add(policy.agent.where, "agent.accounts", std::string("missing, and more than one user is possible") + why,
                 "say 'per-user' (an agent account each), or 'shared' (one for all: their agents can reach each other's state)");
}

void check_roots_fit_unit(const Policy &policy, Problems &problems)
{
    for (const auto &entry : policy.users)
        for (const auto &root : entry.roots)
            if (const auto problem = problem_of_root_in_unit(root.text); problem && root.at_own_path)
                problems.add(root.where, root_key(entry, root), quote(root.text) + " " + problem->text, problem->remedy);
}

// The runner holds the real paths against each other again (common/as_user/user_paths.hpp, runner/root/view/root_tree.hpp).
void check_apart_from_state(const Policy &policy, Problems &problems)
{
    const auto &state_dir = policy.agent.state_dir;
    if (state_dir == default_state_dir || problems.has_within("agent")) return; // no path of a policy may name the default
    const auto check = [&](const PolicyPath &path, const std::string &key) {
        if (const auto problem = problem_beside_state(path.path, state_dir))
            problems.add(path.where, key, quote(path.path) + " " + problem->text, problem->remedy);
    };
    const auto check_level = [&](const Rules &rules, const std::string &whose) {
        for (const auto &path : rules.view_paths.value_or(std::vector<PolicyPath>()))
            check(path, whose + "view_paths");
        for (const auto &path : rules.path.value_or(std::vector<PolicyPath>()))
            check(path, whose + "path");
    };
    for (const auto &entry : policy.users) {
        for (const auto &root : entry.roots)
            check({root.text, root.where}, root_key(entry, root));
        if (entry.rules) check_level(*entry.rules, entry_key(entry) + ".");
    }
    check_level(policy.rules, "");
    check({parent_of(policy.agent.binary), policy.agent.binary_where}, "agent.binary");
}

void check_image(const Policy &policy, Problems &problems)
{
    if (problems.has("sandbox.method")) return; // what the image is for is not known
    const bool is_docker = policy.sandbox.method == SandboxMethod::docker;
    const bool takes_one = is_docker || policy.sandbox.method == SandboxMethod::podman;
    const bool is_named = policy.sandbox.image_where.line > 0;
    if (is_docker && !is_named)
        problems.add(policy.sandbox.where, "sandbox.image", "is missing, and the method docker makes no container without one",
                     "name an image that is on this host");
    if (!takes_one && is_named)
        problems.add(policy.sandbox.image_where, "sandbox.image",
                     std::string("is for the methods docker and podman, and the method is ") + to_string(policy.sandbox.method),
                     "remove the key, or choose one of these methods");
}

// Under the method none nobody filters calls.
void refuse_calls_without_filter(const Policy &policy, Problems &problems)
{
    if (policy.sandbox.method != SandboxMethod::none || problems.has("sandbox.method")) return;
    const auto &calls = policy.calls;
    for (const auto &[key, list] : {std::pair("hardening.deny_system_calls", &calls.denied),
                                    {"hardening.allow_system_calls", &calls.allowed},
                                    {"hardening.address_families", &calls.families}})
        if (!list->empty())
            problems.add(list->front().where, key,
                         "sandbox.method none (" + to_string(policy.sandbox.where) + ") filters no system calls of a session",
                         "remove the key, or use another method");
}

// Two roots of one entry for one directory, of which one has rules: a start could not say which hold.
void check_roots_differ(const UserEntry &entry, Problems &problems)
{
    std::map<std::string, const RootSpec *> known;
    for (const auto &root : entry.roots) {
        const auto [other, is_new] = known.emplace(root.text, &root);
        if (!is_new && !say_the_same(root.rules, other->second->rules))
            problems.add(root.where, root_key(entry, root),
                         quote(root.text) + " is named twice, first at " + to_string(other->second->where) + ", with different rules",
                         "keep one of them");
    }
}

// What the levels of one entry say together.
void check_levels(const Policy &policy, const UserEntry &entry, Problems &problems)
{
    check_roots_differ(entry, problems);
    if (!entry.rules || (!entry.rules->readable && !entry.rules->caches && !entry.rules->own_readable)) return;
    Rules together = policy.rules;
    lay_over(together, *entry.rules);
    settle_toolchains(together, problems);
}

class AccountRules {
public:
    AccountRules(const Policy &policy, const UserFiles &files, Problems &problems) : policy_(policy), files_(files), problems_(problems)
    {
        for (const auto &entry : policy.users) {
            if (!entry.is_group) users_.emplace(entry.name, &entry);
            if (entry.run_as) run_as_.insert(*entry.run_as);
        }
    }

    // The agent must be nobody who can start it, or the isolation would end at its own account.
    void check_account_is_nobodys(const std::string &account, const Position &where, const std::string &key)
    {
        if (account == "root") problems_.add(where, key, "the agent's account cannot be root", "name an account of its own");
        const auto user = users_.find(account);
        if (user == users_.end()) return;
        problems_.add(where, key,
                      "the agent's account " + quote(account) + " is a user of this policy (" + to_string(user->second->where) + ")",
                      "name an account of its own");
    }

    void check_entry(const UserEntry &entry)
    {
        const auto key = entry_key(entry);
        if (!entry.is_group && entry.name == "root")
            problems_.add(entry.where, key, "root cannot be a user of pi", "name the account that works with it");
        if (entry.run_as) check_account_is_nobodys(*entry.run_as, entry.run_as_where, key + ".run_as");
        if (policy_.agent.accounts != Accounts::per_user) return;
        if (!entry.is_group) {
            check_own_account(entry, key);
        } else if (entry.run_as) {
            problems_.add(entry.run_as_where, key + ".run_as", "one account for all members of a group, but agent.accounts is 'per-user'",
                          "remove run_as, or say 'shared'");
        }
    }

private:
    void check_own_account(const UserEntry &entry, const std::string &key)
    {
        if (!is_account_name(entry.name)) return; // already reported; its consequences are not another mistake
        if (is_agents(entry.name)) {
            problems_.add(entry.where, key, "has the name of an agent's account",
                          "rename the user, choose another agent.user or run_as, or name this user in the policy and not in users.d");
        }
        const auto account = agent_account_name(policy_, entry.name, entry.run_as);
        if (!entry.run_as && !policy_.people.contains(account)) check_account_is_nobodys(account, entry.where, key);
        if (entry.run_as) check_account_is_nobody_elses(entry, key);
        const auto [other, is_new] = accounts_.emplace(account, &entry);
        if (is_new) return;
        problems_.add(entry.where, key,
                      "has the account " + quote(account) + " of " + entry_key(*other->second) + " (" + to_string(other->second->where) +
                          "), but agent.accounts is 'per-user'",
                      "give each a run_as of its own, or say 'shared'");
    }

    // The same as is_agent_account (common/policy/policy.hpp), which looks at each entry: if each entry did that, a policy of many would
    // take for ever.
    [[nodiscard]] bool is_agents(const std::string &name) const { return has_agents_name(policy_, name) || run_as_.contains(name); }

    void check_account_is_nobody_elses(const UserEntry &entry, const std::string &key)
    {
        const std::string prefix = policy_.agent.user + "-";
        if (!entry.run_as->starts_with(prefix)) return;
        const std::string other = entry.run_as->substr(prefix.size());
        if (to_number<uid_t>(other))
            problems_.add(entry.run_as_where, key + ".run_as",
                          quote(*entry.run_as) + " is how the account of the user with the uid " + other +
                              " is called where the user's name does not fit",
                          "name another account, or say 'shared'");
        if (!files_.has_unread || other == entry.name || !files_.has_unread(other)) return;
        problems_.add(entry.run_as_where, key + ".run_as",
                      quote(*entry.run_as) + " is the account of users." + other + " in users.d, but agent.accounts is 'per-user'",
                      "name another account, or say 'shared'");
    }

    const Policy &policy_;
    const UserFiles &files_;
    Problems &problems_;
    std::set<std::string> run_as_;
    std::map<std::string, const UserEntry *> users_;
    std::map<std::string, const UserEntry *> accounts_; // per-user: whose each is
};

} // namespace

void check_policy_rules(const Policy &policy, const UserFiles &files, Problems &problems)
{
    check_image(policy, problems);
    refuse_calls_without_filter(policy, problems);
    check_network_rules(policy, problems);
    for (const auto &entry : policy.users)
        check_levels(policy, entry, problems);
    check_roots_fit_unit(policy, problems);
    check_apart_from_state(policy, problems);
    if (policy.users.empty() && !files.has_unread && policy.wrapper.enable && !problems.has("users")) {
        problems.add(policy.users_where, "users", "nobody is authorised", "add a user, or say 'wrapper: {enable: false}'");
    }
    check_accounts_said(policy, files, problems);
    AccountRules rules(policy, files, problems);
    if (policy.agent.accounts != Accounts::per_user)
        rules.check_account_is_nobodys(policy.agent.user, policy.agent.user_where, "agent.user");
    for (const auto &entry : policy.users)
        rules.check_entry(entry);
}

} // namespace pi_agent

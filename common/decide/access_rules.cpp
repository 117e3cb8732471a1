// From a policy and an account to what the account is granted.
#include "common/decide/access_rules.hpp"

#include "common/base/escape.hpp"
#include "common/base/problems.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>
#include <utility>

namespace pi_agent {

namespace {

constexpr const char *default_config = ".pi/agent";

// Why `caller` can never be a user, whatever entry would fit.
std::optional<std::string> problem_of_caller(const Policy &policy, const Account &caller)
{
    const auto name = quote(caller.name);
    if (caller.uid == Uid(0)) return "root cannot use pi; run it from an account that the policy authorises";
    if (!is_plain_name(caller.name) && defence_is_on("plain-callers")) {
        return "the account name " + name +
               " cannot be used; it may hold at most 32 of a-z, 0-9, '_', '-' and '.', and begins with a letter or '_'";
    }
    if (is_agent_account(policy, caller.name)) return "the account " + name + " is an agent's own; pi cannot be started from inside";
    return std::nullopt;
}

std::string from_home(const std::string &path, const Account &caller)
{
    if (path.front() == '/') return path;
    return caller.home + (caller.home.back() == '/' ? "" : "/") + path;
}

// The entries that apply to the caller, with the group of each group entry.
using Matches = std::vector<std::pair<const UserEntry *, std::optional<Gid>>>;

Matches find_matches(const Policy &policy, const Account &caller)
{
    Matches groups;
    for (const auto &entry : policy.users) {
        if (!entry.is_group) {
            if (entry.name == caller.name) return {{&entry, std::nullopt}};
            continue;
        }
        const auto group = find_group(entry.name);
        if (group && std::find(caller.groups.begin(), caller.groups.end(), group->value()) != caller.groups.end())
            groups.push_back({&entry, group});
    }
    return groups;
}

// Joins the entries of several groups; what two of them set differently has no right answer.
class Joiner {
public:
    explicit Joiner(std::string caller) : caller_(std::move(caller)) {}

    void take(const UserEntry &entry, const std::optional<std::string> &value, const char *name, std::optional<std::string> &into)
    {
        if (!value) return;
        if (into && *into != *value) report(entry, name);
        into = value;
    }

    void take(const UserEntry &entry, const Environment &env, Environment &into)
    {
        for (const auto &[name, value] : env) {
            const auto [present, is_new] = into.emplace(name, value);
            if (!is_new && present->second != value) report(entry, "env." + name);
        }
    }

    void throw_if_any() const { problems_.throw_if_any(); }

private:
    void report(const UserEntry &entry, const std::string &name)
    {
        problems_.add(entry.where, entry_key(entry) + "." + name, "another group of " + caller_ + " sets it differently",
                      "give " + caller_ + " an entry of their own, or set it alike");
    }

    std::string caller_;
    Problems problems_;
};

} // namespace

std::variant<AccessRules, NotAuthorised> find_access_rules(const Policy &policy, const Account &caller, const std::string &policy_file)
{
    if (const auto problem = problem_of_caller(policy, caller)) return NotAuthorised{*problem};
    const auto matches = find_matches(policy, caller);
    if (matches.empty()) {
        return NotAuthorised{"the policy " + policy_file + " does not authorise " + caller.name + ": there is no entry users." +
                             caller.name + " and none for a group of this account; ask the administrator of this host for one"};
    }
    Joiner joiner(caller.name);
    std::optional<std::string> config;
    std::optional<std::string> run_as;
    std::optional<std::string> ssh_key;
    AccessRules rules;
    rules.where = matches.front().first->where;
    for (const auto &[entry, group] : matches) {
        rules.entry += (rules.entry.empty() ? "" : ", ") + entry_key(*entry);
        for (const auto &root : entry->roots)
            rules.roots.push_back({root, group});
        joiner.take(*entry, entry->config, "config", config);
        joiner.take(*entry, entry->run_as, "run_as", run_as);
        joiner.take(*entry, entry->ssh_key, "ssh.key", ssh_key);
        joiner.take(*entry, entry->env, rules.env);
    }
    joiner.throw_if_any();
    rules.config_directory = from_home(config.value_or(default_config), caller);
    if (ssh_key) rules.ssh_key = from_home(*ssh_key, caller);
    rules.agent_account = agent_account_name(policy, caller.name, run_as);
    if (!is_plain_name(rules.agent_account)) {
        return NotAuthorised{"the agent account of " + caller.name + " would be called " + quote(rules.agent_account) +
                             ", which is longer than 32; the administrator can give " + caller.name + " an entry with run_as in " +
                             policy_file};
    }
    return rules;
}

} // namespace pi_agent

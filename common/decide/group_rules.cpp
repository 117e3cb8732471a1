// Joins what groups say, and lays the user's own entry over it.
#include "common/decide/group_rules.hpp"

#include "common/policy/policy_levels.hpp"

#include <algorithm>

namespace pi_agent {

CallersEntries find_entries(const Policy &policy, const Account &caller)
{
    CallersEntries entries;
    for (const auto &entry : policy.users)
        if (!entry.is_group && entry.name == caller.name) entries.own = &entry;
    for (const auto &entry : policy.users) {
        if (!entry.is_group || (entries.own != nullptr && !entry.rules && entry.env.empty())) continue; // a look-up may be slow
        const auto group = find_group(entry.name);
        if (group && std::find(caller.groups.begin(), caller.groups.end(), group->value()) != caller.groups.end())
            entries.groups.push_back({&entry, *group});
    }
    return entries;
}

void GroupJoin::take(const UserEntry &entry, const std::optional<std::string> &value, const char *name, std::optional<std::string> &into)
{
    if (!value) return;
    if (into && *into != *value) report(entry, name);
    into = value;
}

void GroupJoin::take_rules(const UserEntry &entry)
{
    const Documents before = joined_.rules.documents;
    const Rules &other = rules_of(entry.rules);
    for (const auto &key : join(joined_.rules, other))
        if (own_ == nullptr || !settles(rules_of(own_->rules), key, before, other.documents)) report(entry, key);
}

void GroupJoin::take_env(const UserEntry &entry)
{
    for (const auto &[name, value] : entry.env) {
        const auto [present, is_new] = joined_.env.emplace(name, value);
        if (is_new) joined_.env_where[name] = entry.env_where.at(name);
        if (!is_new && present->second != value && (own_ == nullptr || !own_->env.contains(name))) report(entry, "env." + name);
    }
}

JoinedRules GroupJoin::finish()
{
    problems_.throw_if_any();
    if (own_ == nullptr) return std::move(joined_);
    lay_over(joined_.rules, rules_of(own_->rules));
    for (const auto &[name, value] : own_->env) {
        joined_.env[name] = value;
        joined_.env_where[name] = own_->env_where.at(name);
    }
    return std::move(joined_);
}

void GroupJoin::report(const UserEntry &entry, const std::string &name)
{
    problems_.add(entry.where, entry_key(entry) + "." + name, "another group of " + caller_ + " sets another value",
                  "give " + caller_ + " an entry under users, or set the same value in both");
}

} // namespace pi_agent

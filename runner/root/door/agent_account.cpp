// Finds and judges the agent's account, at every launch again: accounts change after `pi-agentctl apply` has judged them.
#include "runner/root/door/agent_account.hpp"

#include "common/decide/privileged_groups.hpp"
#include "common/host/remedy.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

Account find_existing(const AccessRules &rules, const Account &caller)
{
    std::optional<Account> agent = find_account(rules.agent_account);
    if (agent) return std::move(*agent);
    const bool by_group = !rules.roots.empty() && rules.roots.front().by_group.has_value();
    const std::string late = by_group ? "; " + caller.name +
                                            " may have joined the group after the last apply: the administrator runs "
                                            "pi-agentctl apply again"
                                      : "; the administrator runs: pi-agentctl apply";
    throw Failure(ExitStatus::configuration,
                  "the agent's account " + rules.agent_account + " (" + to_string(rules.where) + ") does not exist" + late);
}

// The caller's own uid or primary group would be swapped with itself in the project's id map, and the agent would have the user's rights
// everywhere.
void require_nobodys(const Policy &policy, const AccessRules &rules, const Account &agent, const Account &caller)
{
    const std::string who = "the agent's account " + rules.agent_account + " (" + to_string(rules.where) + ") ";
    const std::string remedy = "; the administrator gives it a uid and a primary group of its own, or names another account";
    if (agent.uid.value() == 0 || agent.uid == caller.uid || agent.gid.value() == 0)
        throw Failure(ExitStatus::configuration, who + "must be neither root's nor the caller's own" + remedy);
    if (!defence_is_on("agents-numbers")) return;
    if (std::find(agent.groups.begin(), agent.groups.end(), caller.gid.value()) != agent.groups.end())
        throw Failure(ExitStatus::configuration, who + "is in the primary group of " + caller.name + remedy);
    for (const auto &entry : policy.users) {
        if (entry.is_group) continue;
        const std::optional<Account> user = find_account(entry.name);
        if (user && user->uid == agent.uid)
            throw Failure(ExitStatus::configuration,
                          who + "has the uid of " + entry.name + ", a user of the policy (" + to_string(entry.where) + ")" + remedy);
    }
}

[[noreturn]] void refuse_group(const AccessRules &rules, const std::string &group)
{
    const std::string command = command_about(rules.agent_account, {"gpasswd", "-d", rules.agent_account, group}, "");
    throw Failure(ExitStatus::configuration, "the agent's account " + rules.agent_account + " is in the group " + group +
                                                 ", which opens the host or a user's files to it; the administrator takes it out of that "
                                                 "group" +
                                                 (command.empty() ? "" : " (" + command + ")") + ", or names another account");
}

void require_caller_is_no_agent(const Policy &policy, const Account &caller)
{
    if (!defence_is_on("agents-numbers")) return;
    std::vector<std::string> names = {policy.agent.user};
    for (const auto &entry : policy.users)
        if (!entry.is_group)
            names.push_back(agent_account_name(policy, entry.name, entry.run_as));
        else if (entry.run_as)
            names.push_back(*entry.run_as);
    for (const auto &name : names) {
        const std::optional<Account> agent = find_account(name);
        if (agent && agent->uid == caller.uid)
            throw Failure(ExitStatus::denied, "denied: " + caller.name + " has the uid of " + name +
                                                  ", an agent's own account; pi cannot be started from inside");
    }
}

} // namespace

Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller)
{
    require_caller_is_no_agent(policy, caller);
    Account agent = find_existing(rules, caller);
    require_nobodys(policy, rules, agent, caller);
    const std::string primary = group_name(agent.gid).value_or("");
    if (is_privileged_group(primary) && defence_is_on("privileged-groups")) refuse_group(rules, primary);
    return agent;
}

Account without_other_groups(Account agent)
{
    agent.groups = {agent.gid.value()};
    return agent;
}

void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent)
{
    const std::vector<std::string> forbidden = forbidden_groups_of(policy, agent);
    if (!forbidden.empty()) refuse_group(rules, forbidden.front());
}

} // namespace pi_agent

// limits.disk as it is explained and checked: whether a quota of this host holds agents to it, and what starts do where none does.
#include "admin/diagnose/explain.hpp"

#include "runner/root/session/disk_quota.hpp"

#include <fmt/format.h>

namespace pi_agent {

std::string find_disk_problem(const Policy &policy)
{
    return policy.limits.disk ? problem_of_disk_limit(policy) : "";
}

std::string disk_text(const ExplainedLimits &explained)
{
    const auto &said = explained.limits.disk;
    if (!said) return "";
    std::string text = fmt::format("          disk of a user's agent: {} ({})\n", said->text, to_string(said->where));
    if (explained.disk.empty()) return text;
    const char *start = explained.limits.without_quota == WithoutQuota::refuse ? "no start is possible: " : "";
    return text + fmt::format("          {}limits.disk is not enforced: {}\n", start, explained.disk);
}

std::vector<IdleDiskLimit> find_idle_disk_limits(const Policy &policy)
{
    std::vector<IdleDiskLimit> found;
    std::optional<std::string> problem; // the same for each level: it is one of the host, and of the method
    const auto look_at = [&](const Rules &rules, const std::string &whose) {
        const auto &own = rules.limits;
        const auto &disk = own.disk ? own.disk : policy.limits.disk;
        if (!disk || (!own.disk && !own.without_quota)) return;
        if (!problem) problem = problem_of_disk_limit(policy);
        if (problem->empty()) return;
        const char *key = own.disk ? "limits.disk" : "limits.disk_without_quota";
        const auto place = rules.places.find(key);
        const auto choice = own.without_quota ? own.without_quota : policy.limits.without_quota;
        found.push_back(
            {{place == rules.places.end() ? disk->where : place->second.where, whose + key,
              disk->text + (choice == WithoutQuota::refuse ? " cannot be enforced on this host: " : " is not enforced: ") + *problem,
              choice == WithoutQuota::refuse ? "or remove the key" : ""},
             choice.value_or(WithoutQuota::tell)});
    };
    look_at(policy.rules, "");
    for (const auto &entry : policy.users)
        if (entry.rules) look_at(*entry.rules, entry_key(entry) + ".");
    return found;
}

void check_disk_limits(const Policy &policy, Problems &problems)
{
    for (const auto &idle : find_idle_disk_limits(policy))
        if (idle.choice == WithoutQuota::refuse) problems.add(idle.told.where, idle.told.key, idle.told.problem, idle.told.remedy);
}

} // namespace pi_agent

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
    const auto choice = explained.limits.without_quota;
    const char *start = choice == WithoutQuota::refuse    ? "no start is possible: "
                        : choice == WithoutQuota::measure ? "each start measures the home: "
                                                          : "";
    return text + fmt::format("          {}limits.disk is not enforced: {}\n", start, explained.disk);
}

void check_disk_limit(const Policy &policy, Problems &problems)
{
    if (policy.limits.without_quota != WithoutQuota::refuse) return; // a warning then
    if (const std::string problem = find_disk_problem(policy); !problem.empty())
        problems.add(policy.limits.disk->where, "limits.disk", policy.limits.disk->text + " cannot be enforced on this host: " + problem,
                     "or remove the key");
}

std::optional<Diagnostic> idle_disk_limit(const Policy &policy)
{
    if (policy.limits.without_quota == WithoutQuota::refuse) return std::nullopt; // an error then
    const std::string problem = find_disk_problem(policy);
    if (problem.empty()) return std::nullopt;
    return Diagnostic{policy.limits.disk->where, "limits.disk", policy.limits.disk->text + " is not enforced: " + problem, ""};
}

} // namespace pi_agent

// The limits in force, with whose words they are, and which of them hold nobody here.
#include "admin/diagnose/explain.hpp"

#include "common/policy/policy_sections.hpp"
#include "runner/plan/limits.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

std::string default_memory()
{
    return std::to_string(session_memory_percent) + "%";
}

std::string said_or(const std::optional<SaidLimit> &said, const std::string &otherwise)
{
    return said ? fmt::format("{} ({})", said->text, to_string(said->where)) : otherwise;
}

nlohmann::json limit_json(const std::optional<SaidLimit> &said, const nlohmann::json &otherwise)
{
    if (!said) return {{"value", otherwise}, {"where", nullptr}};
    return {{"value", said->text}, {"where", to_string(said->where)}};
}

} // namespace

ExplainedLimits explain_limits(const Policy &policy)
{
    return {policy.limits, idle_limits(policy.limits, host_controllers()), problem_of_share(policy.limits, host_memory())};
}

std::string to_text(const ExplainedLimits &explained)
{
    const auto &limits = explained.limits;
    const std::string sessions = said_or(limits.sessions, fmt::format("{} (default)", session_limit));
    std::string text = fmt::format("limits:   a session: memory {}, tasks {}, cpu {}, runtime {};\n          sessions at once: {}\n",
                                   said_or(said_memory(limits), default_memory() + " of the host's (default)"),
                                   said_or(limits.tasks, fmt::format("{} (default)", session_tasks)), said_or(limits.cpu, "not limited"),
                                   said_or(limits.runtime, "not limited"), sessions);
    for (const auto &idle : explained.idle)
        text += fmt::format("          {}: {}: {}\n", idle.said ? "no start is possible" : "not enforced", to_string(idle), idle.reason);
    if (!explained.problem.empty()) text += fmt::format("          no start is possible: {}\n", explained.problem);
    return text;
}

nlohmann::json to_json(const ExplainedLimits &explained)
{
    const auto &limits = explained.limits;
    nlohmann::json json = {{"memory", limit_json(said_memory(limits), default_memory())},
                           {"tasks", limit_json(limits.tasks, std::to_string(session_tasks))},
                           {"cpu", limit_json(limits.cpu, nullptr)},
                           {"runtime", limit_json(limits.runtime, nullptr)},
                           {"sessions", limit_json(limits.sessions, std::to_string(session_limit))},
                           {"not_enforced", nlohmann::json::array()}};
    for (const auto &idle : explained.idle)
        json["not_enforced"].push_back({{"limit", idle.key}, {"said", idle.said.has_value()}, {"reason", idle.reason}});
    if (!explained.problem.empty()) json["reason"] = explained.problem;
    return json;
}

void check_limits(const Policy &policy, Problems &problems)
{
    const ExplainedLimits explained = explain_limits(policy);
    if (!explained.problem.empty()) problems.add(policy.limits.memory_share->where, "limits.memory", explained.problem, "");
    for (const auto &idle : explained.idle)
        if (idle.said)
            problems.add(idle.said->where, idle.key, idle.said->text + " cannot be enforced on this host: " + idle.reason,
                         "or leave the key out");
}

std::string idle_defaults(const Policy &policy)
{
    std::string text;
    for (const auto &idle : explain_limits(policy).idle)
        if (!idle.said) text += fmt::format("not enforced: {}: {}\n", to_string(idle), idle.reason);
    return text;
}

} // namespace pi_agent

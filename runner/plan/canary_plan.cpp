// The plan on its way from the runner to the canary.
#include "runner/plan/canary_plan.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

namespace pi_agent {

namespace {

constexpr std::string_view namespace_prefix = "host-";
constexpr const char *unconfined = "unconfined=";
constexpr const char *with_gate = "gate=";
constexpr std::string_view allowed_call = "allowed-call";

} // namespace

std::vector<std::string> canary_arguments(const CanaryPlan &plan)
{
    std::vector<std::string> arguments = {"project=" + plan.project, "home=" + plan.home, "user-home=" + plan.user_home};
    if (!plan.confined) arguments.emplace_back(unconfined);
    if (plan.has_gate) arguments.emplace_back(with_gate);
    for (const auto &[kind, host] : plan.namespaces)
        arguments.push_back(std::string(namespace_prefix) + kind + "=" + host);
    for (const auto &name : plan.allowed_calls)
        arguments.push_back(std::string(allowed_call) + "=" + name);
    return arguments;
}

CanaryPlan parse_canary_arguments(const std::vector<std::string> &arguments)
{
    CanaryPlan plan;
    for (const auto &argument : arguments) {
        const std::size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
        if (name == "project")
            plan.project = value;
        else if (name == "home")
            plan.home = value;
        else if (name == "user-home")
            plan.user_home = value;
        else if (argument == unconfined)
            plan.confined = false;
        else if (argument == with_gate)
            plan.has_gate = true;
        else if (name == allowed_call)
            plan.allowed_calls.push_back(value);
        else if (name.compare(0, namespace_prefix.size(), namespace_prefix) == 0)
            plan.namespaces[name.substr(namespace_prefix.size())] = value;
        else
            throw Failure(ExitStatus::usage,
                          "pi-agent-canary is started by pi-agent's runner and does not know the argument " + escape_for_display(argument));
    }
    if (plan.project.empty() || plan.home.empty())
        throw Failure(ExitStatus::usage, "pi-agent-canary is started by pi-agent's runner, in the agent's place: pi --pi-agent-canary");
    return plan;
}

} // namespace pi_agent

// Reads what the runner tells the canary.
#include "runner/inside/canary_plan.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

namespace pi_agent {

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
        else if (argument == canary_unconfined)
            plan.confined = false;
        else if (argument == canary_with_gate)
            plan.has_gate = true;
        else if (name == canary_allowed_call)
            plan.allowed_calls.push_back(value);
        else if (name.compare(0, canary_namespace_prefix.size(), canary_namespace_prefix) == 0)
            plan.namespaces[name.substr(canary_namespace_prefix.size())] = value;
        else
            throw Failure(ExitStatus::usage,
                          "pi-agent-canary is started by pi-agent's runner and does not know the argument " + escape_for_display(argument));
    }
    if (plan.project.empty() || plan.home.empty())
        throw Failure(ExitStatus::usage, "pi-agent-canary is started by pi-agent's runner, in the agent's place: pi --pi-agent-canary");
    return plan;
}

} // namespace pi_agent

// The variables that a start would give to the agent, and which layer each comes from, for pi-agentctl explain.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "common/decide/access_rules.hpp"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pi_agent {

struct ExplainedVariable {
    std::string name;
    std::string value; // empty when hidden
    bool is_hidden;    // it looks like a secret
    std::string from;
};

struct ExplainedEnvironment {
    std::vector<ExplainedVariable> variables; // by name
    std::vector<std::string> notes;           // files that could not be looked at, or cannot be used, and variables that are left out
};

// Without what the user's shell says of its terminal, which is the lowest layer.
ExplainedEnvironment explain_environment(const Policy &policy, const AccessRules &rules, const Observer &observer, const Account &user,
                                         const std::string &home);

std::string to_text(const ExplainedEnvironment &environment);
nlohmann::json to_json(const ExplainedEnvironment &environment);

} // namespace pi_agent

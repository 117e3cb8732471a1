// The agent's environment: layers in a fixed order, nothing of the user's shell but what describes the terminal.
#pragma once

#include "common/account.hpp"
#include "common/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct EnvironmentInput {
    std::vector<std::string> presentation; // NAME=VALUE from the request, lowest
    Environment managed;                   // policy `env`
    Environment per_user;                  // policy `users.NAME.env`
    std::string home;
    std::string agent_name; // account
    std::string binary;
    std::string session_id;
};

// NAME=VALUE, sorted by name. The product's own variables win over every layer.
std::vector<std::string> compose_environment(const EnvironmentInput &input);

} // namespace pi_agent

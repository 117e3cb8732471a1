// The limits of a session, for pi-agentctl explain and check.
#pragma once

#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/kernel/limit_controllers.hpp"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pi_agent {

struct ExplainedLimits {
    LimitsPolicy limits;
    std::vector<IdleLimit> idle; // on this host
    std::string problem;         // of a share of this host's memory; empty when there is none
};

ExplainedLimits explain_limits(const Policy &policy);

std::string to_text(const ExplainedLimits &explained);
nlohmann::json to_json(const ExplainedLimits &explained);

// What is said and cannot be enforced is a problem; what is not said, and is not enforced either, is told, one a line.
void check_limits(const Policy &policy, Problems &problems);
std::string idle_defaults(const Policy &policy);

} // namespace pi_agent

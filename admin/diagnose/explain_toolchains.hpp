// What a session would see of its user's home, and what of the lists is not there, for pi-agentctl explain.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "common/policy/policy.hpp"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pi_agent {

struct ExplainedHomeDirectory {
    std::string path;   // relative to the user's home
    std::string inside; // relative to the agent's
    Finding finding;    // usable, unusable with the reason or with none where it is missing, or not verified
};

struct ExplainedToolchains {
    std::vector<ExplainedHomeDirectory> readable;
    std::vector<ExplainedHomeDirectory> caches;
};

ExplainedToolchains explain_toolchains(const ToolchainsPolicy &policy, const Observer &observer, const Account &user);

std::string to_text(const ExplainedToolchains &toolchains);
nlohmann::json to_json(const ExplainedToolchains &toolchains);

} // namespace pi_agent

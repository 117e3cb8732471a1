// Who may start pi on this host: everybody whom the policy authorises today, each on a line.
#pragma once

#include "common/policy/policy.hpp"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pi_agent {

struct OverviewLine {
    std::string user;
    std::string entry; // of the policy, "" where `problem` says why there is none
    Position where;
    std::string agent; // the account that the agent runs as
    bool agent_exists = false;
    std::vector<std::string> roots; // as the policy writes them
    std::string problem;            // why this user cannot start pi whatever the roots are, or ""
};

// Members of groups count as they are today. Roots are not looked at: `explain --user` does that.
std::vector<OverviewLine> list_authorised(const Policy &policy, const std::string &policy_file);

std::string to_text(const std::vector<OverviewLine> &lines);
nlohmann::json to_json(const std::vector<OverviewLine> &lines);

} // namespace pi_agent

// Looks at everything, and says what is wrong and what to do: `pi-agentctl doctor`; and at a glance, without arguments.
#pragma once

#include "admin/diagnose/canary_run.hpp"
#include "admin/diagnose/faults.hpp"
#include "common/policy/policy.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// --- pi-agentctl doctor: every way around the wrapper, every reason why a start would fail, and whether the sandbox holds.

struct DoctorOptions {
    std::optional<std::string> user; // whose session tries the sandbox; without one the first who has a root
    bool attack = false;             // print every probe with its answer, not only the wrong ones
    bool json = false;
};

// Throws Failure(unavailable) when anything is not as it is to be, Failure(denied) unless it is root's.
void run_doctor(const DoctorOptions &options, std::ostream &out);

// --- Who may start pi on this host: everybody whom the policy authorises today, each on a line.

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

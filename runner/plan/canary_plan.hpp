// What the runner tells the canary about its session.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pi_agent {

// What the runner tells the canary about the session, by argument: "name=value".
struct CanaryPlan {
    std::string project;                           // may be written
    std::string home;                              // of the agent
    std::string user_home;                         // of the caller: no part of it may be visible except what the policy names
    std::map<std::string, std::string> namespaces; // that must differ from the host's: kind, and the host's own (stat(2) st_ino)
    bool confined = true;                          // false: only what account and view must hold is asked
    std::vector<std::string> allowed_calls = {};   // that the policy does not refuse, as it does otherwise
    bool has_gate = false;                         // a network of hosts: nothing but the gate may answer
};

std::vector<std::string> canary_arguments(const CanaryPlan &plan);
// Throws Failure(usage).
CanaryPlan parse_canary_arguments(const std::vector<std::string> &arguments);

} // namespace pi_agent

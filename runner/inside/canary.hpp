// What a session looks like from inside, held against what it is to be: asked by pi-agent-canary in the agent's place. Unprivileged.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pi_agent {

// What the runner tells the canary about the session, by argument: "name=value".
struct CanaryPlan {
    std::string project;                           // may be written
    std::string home;                              // of the agent
    std::string user_home;                         // of the caller: nothing of it may be seen but what the policy names
    std::map<std::string, std::string> namespaces; // that are not to be the host's: kind, and the host's own (stat(2) st_ino)
    bool confined = true;                          // else only what account and view are to hold is asked
};

struct CanaryFinding {
    std::string what;     // "write /etc"
    std::string expected; // "refused"
    std::string seen;     // "refused (EROFS)", "done"
    bool is_right;
};

// The host's own namespaces of these kinds, as PID 1 has them; by root. Throws SystemFailure.
std::map<std::string, std::string> host_namespaces(const std::vector<std::string> &kinds);

std::vector<std::string> canary_arguments(const CanaryPlan &plan);
// Throws Failure(usage).
CanaryPlan parse_canary_arguments(const std::vector<std::string> &arguments);

// Leaves nothing behind.
std::vector<CanaryFinding> look_around(const CanaryPlan &plan);

} // namespace pi_agent

// pi-agentctl why: may the agent read or write a path, by which rule, and which key would change it. Asked in a session.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

struct WhyOptions {
    std::vector<std::string> paths; // relative ones to the directory of the session
    std::optional<std::string> user, directory;
    bool json = false;
};

// Starts one session as the user, in which a shell looks at the paths. Throws Failure.
void run_why(const WhyOptions &options, std::ostream &out);

} // namespace pi_agent

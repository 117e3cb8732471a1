// What is wrong with this host, for pi-agentctl doctor.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

struct Fault {
    std::string about; // a short stable name: "sudo-rule", "other-pi", …; docs/doctor.md lists them
    std::string what;  // escaped for display
    std::string remedy;
};
using Faults = std::vector<Fault>;

} // namespace pi_agent

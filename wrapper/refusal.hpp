// The wrapper's own look at the policy: refuses early and in friendly words. The runner decides again, and only that counts.
#pragma once

#include "common/fd.hpp"
#include "common/policy.hpp"

#include <string>

namespace pi_agent {

// What the wrapper takes from the policy for itself.
struct EarlyLook {
    std::string decision; // a sentence on what was allowed, for --pi-agent-debug
    std::string cwd;      // canonical
    std::string root;     // that holds it
    std::string home;     // of the user
    ProjectsPolicy projects;
};

// Throws Failure: denied, configuration or unavailable.
EarlyLook refuse_early(FdRef cwd);

} // namespace pi_agent

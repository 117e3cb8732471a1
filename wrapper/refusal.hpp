// The wrapper's own look at the policy: refuses early and in friendly words. The runner decides again, and only that counts.
#pragma once

#include "common/fd.hpp"

#include <string>

namespace pi_agent {

// Throws Failure: denied, configuration or unavailable. Returns a sentence on what was allowed, for --pi-agent-debug.
std::string refuse_early(FdRef cwd);

} // namespace pi_agent

// Does this host have what the policy's sandbox method needs?
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What could not be found out by this process, as sentences.
using Unverified = std::vector<std::string>;

// How much of what a start needs (the agents' homes, too) is to be there: nothing yet, where no session can run (an image that is being
// built); the programs, where what they need may not run just now; or everything that a start asks for.
enum class Means { later, installed, running };

// The same look as at the beginning of each start, without one.
void check_method(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified);

} // namespace pi_agent

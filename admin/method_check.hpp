// Does this host have what the policy's sandbox method needs?
#pragma once

#include "admin/user_view.hpp"
#include "common/policy.hpp"
#include "common/problems.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What could not be found out by this process, as sentences.
using Unverified = std::vector<std::string>;

// How much of it is to be there: the programs, for a host on which no session can run yet (an image that is being built), or on which what
// they need does not run just now; or everything that a start asks for.
enum class Means { installed, running };

// The same look as at the beginning of each start, without one.
void check_method(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified);

} // namespace pi_agent

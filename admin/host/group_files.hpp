// What still belongs to the agents' group, whose number is about to be free: whoever gets it next would own that.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <set>
#include <string>

namespace pi_agent {

// Where pi-agent or its administrator has reason to give something to the group: what apply hides or has hidden, and /etc/pi-agent.
std::set<std::string> places_of_group(const AsRoot &root, const Policy &policy);

// Throws Failure(configuration) that names the first of it, at these places and below them, and says what to do.
void require_nothing_of_group(const std::set<std::string> &places, const std::string &group);

} // namespace pi_agent

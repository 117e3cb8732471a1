// Rules that hold between the values of a policy.
#pragma once

#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"

#include <functional>
#include <string>

namespace pi_agent {

// What is known of users.d beside the entries that were read.
struct UserFiles {
    bool are_possible = false;                           // there is such a directory
    std::function<bool(const std::string &)> has_unread; // whether there is a file for this user that was not read; unset where all were
};

// Reports a policy that authorises nobody, leaves open whether users share an account, or gives the agent an account that is a user's.
void check_policy_rules(const Policy &policy, const UserFiles &files, Problems &problems);

} // namespace pi_agent

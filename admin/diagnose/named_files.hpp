// The files that a policy names and that a start reads as the user: not where agents write.
#pragma once

#include "admin/diagnose/check.hpp"
#include "admin/diagnose/user_view.hpp"
#include "common/base/problems.hpp"

namespace pi_agent {

// The config directory, the key, the files of variables and of certificates that `entry`, or the policy for everybody, names. `user` is
// whose entry it is; none for a group, whose names are held against its roots as texts.
void check_named_files(const Policy &policy, const UserEntry &entry, const std::optional<Account> &user, const Observer &observer,
                       Problems &problems, Unverified &unverified);

} // namespace pi_agent

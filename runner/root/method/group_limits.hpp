// The limits of a session whose control group is ours and not systemd's (cgroups(7), "cgroups version 2").
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <string>

namespace pi_agent {

// Hands the controllers down to `group`, one below another from the mounted hierarchy on, and writes memory, tasks and cpu there: what the
// policy says, and the defaults. best_effort: what is said is held against the kernel's word afterwards
// (runner/root/kernel/limits_check.hpp), and a default holds where it can.
void limit_group(const AsRoot &root, const std::string &group, const LimitsPolicy &limits);

} // namespace pi_agent

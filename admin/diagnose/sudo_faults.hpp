// Whether sudo lets each user of the policy start the runner, exactly that, and as the policy says.
#pragma once

#include "admin/diagnose/fault.hpp"
#include "admin/host/sudo_kind.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// `json` is what cvtsudoers(1) prints for `user` on this host (-e -M -f json -m user=…,host=…): the last rule that fits
// decides, and Defaults that this sudo obeys are held against what the runner needs. Pure. Throws Failure(system_failure) for what is no
// such text.
Faults judge_sudoers(const std::string &json, const std::string &user, const std::string &runner, SudoKind kind);

// The installed rule, and the judgement for each of `users`. Throws Failure when sudo's tools cannot be run.
Faults find_sudo_faults(const AsRoot &root, const Policy &policy, const std::vector<std::string> &users);

} // namespace pi_agent

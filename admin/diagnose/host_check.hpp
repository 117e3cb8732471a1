// Does this host fit a policy: its users, groups and roots, the agent's program, accounts and homes, and what the method needs?
#pragma once

#include "admin/diagnose/method_check.hpp"
#include "admin/diagnose/user_view.hpp"
#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

// Reports files of the installed policy that its users cannot read, and a missing sudo.
void check_installed_files(Problems &problems);

// Reports everything about this host that keeps a start from what the policy says. What `problems` holds already about a key is told, so
// nothing that follows from its value is looked at.
Unverified check_host(const Policy &policy, const Observer &observer, Means means, Problems &problems);

// Of a policy that is valid: what Means::later leaves out, as far as it is to be there.
std::vector<Diagnostic> find_what_starts_lack(const Policy &policy, const Observer &observer);

} // namespace pi_agent

// The account that a session's agent runs as, and what makes it unfit.
#pragma once

#include "common/decide/access_rules.hpp"

namespace pi_agent {

// Never root's, never the caller's or another user's, not in the caller's primary group. By number and not by name alone: two names may
// share a number. Throws Failure(configuration), or Failure(denied) when the caller is an agent under another name.
Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller);

// The account with its primary group alone.
Account without_other_groups(Account agent);

// In no group that opens the host or that the policy authorises. Asks the user database for dozens of names, each of which may be asked of
// a service: to be done while systemd builds the unit, and before the agent starts. Throws Failure(configuration).
void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent);

} // namespace pi_agent

// The account that a session's agent runs as, and what makes it unfit.
#pragma once

#include "common/access_rules.hpp"

namespace pi_agent {

// Never root's, never the caller's or another user's, in no group that opens the host or that the policy authorises. By number and not by
// name alone: two names may share a number. Throws Failure(configuration), or Failure(denied) when the caller is an agent under another
// name.
Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller);

} // namespace pi_agent

// Who called, and whether the accounts that a session needs are fit for it.
#pragma once

#include "common/base/fd.hpp"
#include "common/decide/decision.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

// --- Who is calling: the two witnesses that a caller cannot forge together (design rule 6).

// A decimal uid without sign, space, leading zero or overflow; empty otherwise (CVE-2019-14287: -1 and 4294967295 meant root).
std::optional<Uid> parse_uid(const std::string &text) noexcept;

// The caller: SUDO_UID, accepted only if it equals the uid that made `channel` (SO_PEERCRED), is neither 0 nor -1, and is in the user
// database. Throws Failure(denied) otherwise. SO_PEERCRED names the socket's creator and outlives it, so its pid is never used.
Account authenticate(const AsRoot &root, FdRef channel, const std::optional<std::string> &sudo_uid);

// --- The account that a session's agent runs as, and what makes it unfit.

// Never root, the caller or another user, and not in the caller's primary group. Compares numbers and not only names: two names may share a
// number. Throws Failure(configuration), or Failure(denied) when the caller is an agent under another name.
Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller);

// The account with its primary group alone.
Account without_other_groups(Account agent);

// Requires that the agent is in no group that opens the host or that the policy authorises. Asks the user database for dozens of names, and
// each may be asked of a service: so call it while systemd builds the unit, before the agent starts. Throws Failure(configuration).
void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent);

} // namespace pi_agent

// Who called, and whether the accounts that this needs are sound.
#pragma once

#include "common/base/fd.hpp"
#include "common/decide/decision.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

// --- Who is calling: the two witnesses that a caller cannot forge together (design rule 6).

// A decimal uid without sign, space, leading zero or overflow; nothing otherwise (CVE-2019-14287: -1 and 4294967295 meant root).
std::optional<Uid> parse_uid(const std::string &text) noexcept;

// The caller: SUDO_UID, accepted only if it equals the uid that made `channel` (SO_PEERCRED), is neither 0 nor -1, and is in the user
// database. Throws Failure(denied) otherwise. SO_PEERCRED names the socket's creator and outlives it, so its pid is never used.
Account authenticate(const AsRoot &root, FdRef channel, const std::optional<std::string> &sudo_uid);

// --- The account that a session's agent runs as, and what makes it unfit.

// Never root's, never the caller's or another user's, not in the caller's primary group. By number and not by name alone: two names may
// share a number. Throws Failure(configuration), or Failure(denied) when the caller is an agent under another name.
Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller);

// The account with its primary group alone.
Account without_other_groups(Account agent);

// In no group that opens the host or that the policy authorises. Asks the user database for dozens of names, each of which may be asked of
// a service: to be done while systemd builds the unit, and before the agent starts. Throws Failure(configuration).
void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent);

} // namespace pi_agent

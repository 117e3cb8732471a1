// Who is calling: the two witnesses that a caller cannot forge together (design rule 6).
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// A decimal uid without sign, space, leading zero or overflow; nothing otherwise (CVE-2019-14287: -1 and 4294967295 meant root).
std::optional<Uid> parse_uid(const std::string &text) noexcept;

// The caller: SUDO_UID, accepted only if it equals the uid that made `channel` (SO_PEERCRED), is neither 0 nor -1, and is in the user
// database. Throws Failure(denied) otherwise. SO_PEERCRED names the socket's creator and outlives it, so its pid is never used.
Account authenticate(const AsRoot &root, FdRef channel, const std::optional<std::string> &sudo_uid);

} // namespace pi_agent

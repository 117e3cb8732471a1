// Opens the working directory and the roots again as the caller (design rules 6 and 7).
#pragma once

#include "common/base/fd.hpp"
#include "common/decide/access_rules.hpp"
#include "common/host/account.hpp"

namespace pi_agent {

// In a child that is the caller: opens the working directory, each root and what git knows, and answers with them. `claimed_cwd` came from
// the caller: its link text, device, inode and mount id must be those of the path opened here.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel);

} // namespace pi_agent

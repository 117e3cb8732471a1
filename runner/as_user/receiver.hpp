// Takes everything that the wrapper sends, as the caller. Root never holds a descriptor of a user's, not even to close it: close(2) of a
// file of theirs may wait for them (FUSE, FLUSH), beyond SIGKILL, and a socket may linger (SO_LINGER, socket(7)).
#pragma once

#include "common/decide/access_rules.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

// In a child that is the caller, from the request to the session's end. `wrapper`: its socket; `channel` leads to the runner
// (runner/root/errand/receiver.hpp).
void serve_caller(const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper, FdRef channel);

} // namespace pi_agent

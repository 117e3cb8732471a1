// Answers a user about that user's own sessions, and about nobody else's.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/wire/own_messages.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// The ids of `asked` that are among `own`, in that order, each once. Everything else is left out: whether it is another user's, or
// nobody's, makes no difference.
std::vector<std::string> find_own(const std::vector<std::string> &own, const std::vector<std::string> &asked);

// `caller` is who the kernel and sudo say that it is. Throws Failure for what keeps root from answering.
OwnAnswer answer_own(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question);

} // namespace pi_agent

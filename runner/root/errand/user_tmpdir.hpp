// Has the temporary directory made that a user names (--pi-agent-tmpdir).
#pragma once

#include "common/base/request.hpp"
#include "common/host/identity.hpp"
#include "runner/root/errand/project.hpp"

#include <string>

namespace pi_agent {

// Its path beneath the project; empty when the request names none. Throws Failure(denied) when it does not lie in what is shown, or is not
// the caller's own directory.
std::string ask_user_tmpdir(const AsRoot &root, const Account &caller, const OpenedProject &project, const Request &request);

} // namespace pi_agent

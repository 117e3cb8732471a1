// What `pi-agentctl apply` and `remove` did to this host, as far as a start that is under way has to know: that it was something.
#pragma once

#include "common/host/identity.hpp"

#include <string>

namespace pi_agent {

// Differs from an earlier one when mark_host_changed() was called meanwhile. Throws SystemFailure where that cannot be told.
std::string host_stamp();
// Whoever began a start before this ends it, or is seen as a session already: made first, the session's directory is looked for afterwards.
void mark_host_changed(const AsRoot &root);

} // namespace pi_agent

// Bounds how many starts of one user are under way at once. A start costs a runner and a connection to the system bus, of which root has
// a few hundred, and its user decides how long it waits for a request.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/ids.hpp"
#include "common/host/identity.hpp"

#include <functional>

namespace pi_agent {

// Held as long as the descriptor is open, and gone without a trace with it. Never waits: the caller may freeze this process, and with it a
// lock. Throws Failure(limit) when all of this user's are taken.
UniqueFd take_start_slot(const AsRoot &root, Uid user);

// Looks again for three seconds, in which it holds nothing that others wait for: who starts twenty at once gets twenty. `waiting` is called
// before each look. Throws as above.
UniqueFd wait_for_start_slot(const AsRoot &root, Uid user, const std::function<void()> &waiting);

} // namespace pi_agent

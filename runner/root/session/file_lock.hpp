// Waiting for a lock that another process holds, and not for ever.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <functional>
#include <string>

namespace pi_agent {

// Locks a file for this description alone (flock(2), LOCK_EX). False when somebody else holds it until the deadline. `waiting` is called
// between two tries. Throws SystemFailure, in which `what` names the file, when it cannot be locked.
bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting = {});

} // namespace pi_agent

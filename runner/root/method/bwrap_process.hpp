// Starting bubblewrap: root's, with nothing of the caller's, and bound to this process.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "runner/root/method/sandbox.hpp"

#include <sys/types.h>

namespace pi_agent {

// Borrowed.
struct BwrapDescriptors {
    FdRef launcher;  // the standard input of what runs inside
    FdRef complaint; // standard error
    FdRef info;      // where bwrap tells the number of its first process inside, as JSON
};

// `group`: the control group to start in, or none. Returns the process' number; it is killed when this process ends. Throws SystemFailure.
pid_t run_bwrap(const AsRoot &root, const SandboxPlan &plan, FdRef group, const BwrapDescriptors &descriptors);

} // namespace pi_agent

// Finds the job of the cluster inside of which the caller works.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

// One of this process's ancestors is Slurm's own for a job: root's with all its ids, running a program of that name that only root can
// change. No variable counts, for the caller sets those, and no control group, which not every cluster makes. That process, by a descriptor
// that can be read when it has ended; empty without one, and if an ancestor ends meanwhile.
UniqueFd find_job(const AsRoot &root);

} // namespace pi_agent

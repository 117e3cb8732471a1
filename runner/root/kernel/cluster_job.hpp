// Whether the caller works inside of a job of the cluster.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// One of this process's ancestors is Slurm's own for a job: root's with all its ids, running a program of that name that only root can
// change. No variable counts, for the caller sets those, and no control group, which not every cluster makes. False if an ancestor ends
// meanwhile.
bool is_in_job(const AsRoot &root);

} // namespace pi_agent

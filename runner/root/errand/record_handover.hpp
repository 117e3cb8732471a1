// Handing the launch record over, with the values of the policy's files of variables: they come into no process of root's but one that
// does this alone and ends, because each child of the runner's inherits its memory.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"
#include "runner/wire/launch_record.hpp"

namespace pi_agent {

// `record` is complete but for its environment where the policy has such files: that is composed anew of `environment`. `terminal` as for
// send_launch. Throws what keeps it from being sent.
void hand_record_over(const AsRoot &root, const Policy &policy, const EnvironmentInput &environment, const LaunchRecord &record,
                      FdRef control, FdRef terminal);

} // namespace pi_agent

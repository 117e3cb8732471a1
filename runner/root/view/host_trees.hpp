// Chooses what of the host sessions see, from the policy and from where links lead.
#pragma once

#include "common/policy/policy.hpp"
#include "runner/plan/host_view.hpp"

namespace pi_agent {

// Opens trusted paths only. Throws Failure(configuration) for one that others than root can change, that is not there, or that leads where
// no session looks.
HostView plan_host_view(const Policy &policy);

// The same of one of view_paths alone.
void require_can_be_shown(const Policy &policy, const PolicyPath &path);

} // namespace pi_agent

// The host's directories as a session sees them.
#pragma once

#include "common/base/ids.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <vector>

namespace pi_agent {

// --- Mounts of what a session sees of the host, as its view was planned (runner/plan/host_view.hpp).

// Puts it into the session's root tree, and returns what is to be put there late. To be done before anything else is mounted there: mount
// points are made on the way.
std::vector<LateMount> show_host(const AsRoot &root, const SessionDirectory &session, const HostView &view);

// --- Chooses what of the host sessions see, from the policy and from where links lead.

// Opens trusted paths only. Throws Failure(configuration) for one that others than root can change, that is not there, or that leads where
// no session looks.
HostView plan_host_view(const Policy &policy);

// The same of one of view_paths alone.
void require_can_be_shown(const Policy &policy, const PolicyPath &path);

} // namespace pi_agent

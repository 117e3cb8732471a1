// Mounts of what a session sees of the host, as its view was planned (runner/plan/host_view.hpp).
#pragma once

#include "common/base/ids.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/view/late_mounts.hpp"

#include <vector>

namespace pi_agent {

// Puts it into the session's root tree, and returns what is to be put there late. To be done before anything else is mounted there: mount
// points are made on the way.
std::vector<LateMount> show_host(const AsRoot &root, const SessionDirectory &session, const HostView &view);

} // namespace pi_agent

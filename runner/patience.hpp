// How long processes that wait for each other during a start are patient. Whoever ends takes the others along, so these are for what
// stalls.
#pragma once

namespace pi_agent {

// For one config sync in all, on busy disks as well; each of its steps has the children's own patience (runner/child.hpp).
constexpr int sync_patience_seconds = 300;
// For the launch record, before which the sync and other children are waited for.
constexpr int launch_patience_seconds = sync_patience_seconds + 100;

} // namespace pi_agent

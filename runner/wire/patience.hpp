// How long processes that wait for each other during a start are patient. Whoever ends takes the others along, so these are for what
// stalls.
#pragma once

namespace pi_agent {

// For one config sync in all, on busy disks as well; each of its steps has the children's own patience (runner/root/errand/child.hpp).
constexpr int sync_patience_seconds = 300;
// For the launch record, before which the sync and other children are waited for.
constexpr int launch_patience_seconds = sync_patience_seconds + 100;

// The end of a session that the administrator ends, from the first word to the last look: each of them is waited for no longer, and whoever
// stands still is passed over. Together less than 15 seconds.
constexpr int asked_end_patience_seconds = 7;  // for the runner: the agent's two seconds of grace, its unit's stop, the record
constexpr int killed_end_patience_seconds = 3; // for systemd and the cleanup, after the runner was killed
constexpr int forced_end_patience_seconds = 4; // for what is then done without them
static_assert(asked_end_patience_seconds + killed_end_patience_seconds + forced_end_patience_seconds < 15);

// What the unit that cleans up a session has for all of it (TimeoutStopSec=), and what it gives each part: the last processes, docker, a
// runner that has the end to record, and then placeholders and temporary files.
constexpr int cleanup_unit_seconds = 20;
constexpr int cleanup_group_seconds = 4;
constexpr int cleanup_docker_seconds = 2;
constexpr int cleanup_record_seconds = 3;
constexpr int cleanup_placeholder_seconds = 2;
constexpr int cleanup_removal_seconds = 7;
static_assert(cleanup_group_seconds + cleanup_docker_seconds + cleanup_record_seconds + cleanup_placeholder_seconds +
                  cleanup_removal_seconds <
              cleanup_unit_seconds);

} // namespace pi_agent

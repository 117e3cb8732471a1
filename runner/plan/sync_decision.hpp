// What becomes of one path: the outcome table of the config sync (docs/config-sync.md), without any file.
#pragma once

#include "common/policy/config_classes.hpp"

namespace pi_agent {

// Of the host's file, against what the manifest recorded at the last sync.
enum class HostState { absent, unchanged, changed };
// Of the agent's file, against what the last sync left there.
enum class InsideState { absent, as_synced, other };

enum class SyncAction {
    leave,  // nothing to do
    copy,   // the host's takes its place
    adopt,  // what is inside stays; the host's is remembered, so that a change of it is seen
    remove, // goes, and the manifest forgets it
    forget, // stays inside and is the agent's from now on
};

// `known`: the manifest knows this path; otherwise `host` is absent or changed, and `inside` absent or other.
SyncAction decide_file(FileClass file_class, bool known, HostState host, InsideState inside) noexcept;

} // namespace pi_agent

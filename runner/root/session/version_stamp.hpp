// Which version and which host a home was last used by.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/version.hpp"
#include "common/host/identity.hpp"
#include "runner/root/session/state_directory.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// --- Which pi-agent used a home last. Root's stamp, beside the home, decides; the agent has a copy in it.

// None for a home that was never used. Throws Failure(configuration) when what is there is no version: it is not guessed which migrations a
// home has seen.
std::optional<Version> read_stamp(const StateDirectory &state);

void write_stamp(const StateDirectory &state, const Version &version);

// $XDG_STATE_HOME/.pi-agent-version, as the agent; restored when it is anything else. Left out where the agent has a link or a file in the
// place of a directory above it.
void copy_version(const AsUser &agent, FdRef home, FdRef staging, const Version &version);

// --- What `pi-agentctl apply` and `remove` did to this host, as far as a start that is under way has to know: that it was something.

// Differs from an earlier one when mark_host_changed() was called meanwhile. Throws SystemFailure where that cannot be told.
std::string host_stamp();
// Whoever began a start before this ends it, or is seen as a session already: made first, the session's directory is looked for afterwards.
void mark_host_changed(const AsRoot &root);

} // namespace pi_agent

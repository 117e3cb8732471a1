// Which pi-agent used a home last. Root's stamp, beside the home, decides; the agent has a copy in it.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/version.hpp"
#include "common/host/identity.hpp"
#include "runner/root/session/state_directory.hpp"

#include <optional>

namespace pi_agent {

// None for a home that was never used. Throws Failure(configuration) when what is there is no version: it is not guessed which migrations a
// home has seen.
std::optional<Version> read_stamp(const StateDirectory &state);

void write_stamp(const StateDirectory &state, const Version &version);

// $XDG_STATE_HOME/.pi-agent-version, as the agent; restored when it is anything else. Left out where the agent has a link or a file in the
// place of a directory above it.
void copy_version(const AsUser &agent, FdRef home, FdRef staging, const Version &version);

} // namespace pi_agent

// The writing half of the config sync: runs as the agent, creates everything beneath the agent's home, follows no link.
#pragma once

#include "common/fd.hpp"
#include "common/identity.hpp"

#include <string>

namespace pi_agent {

// Receives from the reader over `transfer` until its end message and writes the agent directory beneath `home`; `managed`, the text of a
// JSON object, is merged over the host's settings.json. Each file is replaced atomically. Sends one empty answer over `channel` when done.
void write_config(const AsUser &agent, FdRef home, const std::string &managed, FdRef transfer, FdRef channel);

// The agent directory beneath the agent's home (PI_CODING_AGENT_DIR).
extern const char *const agent_directory;

} // namespace pi_agent

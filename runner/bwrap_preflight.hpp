// Whether sandbox.method bwrap can work here, asked at every launch before anything is mounted.
#pragma once

#include "build_config.hpp"
#include "common/identity.hpp"

namespace pi_agent {

constexpr const char *bwrap_path = PI_AGENT_BWRAP_PATH;
constexpr const char *setpriv_path = PI_AGENT_SETPRIV_PATH; // becomes the agent, inside

// Throws Failure(unavailable) with the reason and the remedy.
void require_bwrap(const AsRoot &root);

} // namespace pi_agent

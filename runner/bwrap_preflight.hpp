// Whether sandbox.method bwrap can work here, asked at every launch before anything is mounted.
#pragma once

#include "common/identity.hpp"

namespace pi_agent {

constexpr const char *bwrap_path = "/usr/bin/bwrap";
constexpr const char *setpriv_path = "/usr/bin/setpriv"; // becomes the agent, inside

// Throws Failure(unavailable) with the reason and the remedy.
void require_bwrap(const AsRoot &root);

} // namespace pi_agent

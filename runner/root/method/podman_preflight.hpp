// Whether sandbox.method podman can work here, asked at every launch before anything is mounted.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// Throws Failure(unavailable) with the reason and the remedy.
void require_podman(const AsRoot &root);

} // namespace pi_agent

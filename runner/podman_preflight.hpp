// Whether sandbox.method podman can work here, asked at every launch before anything is mounted.
#pragma once

#include "build_config.hpp"
#include "common/identity.hpp"

namespace pi_agent {

constexpr const char *podman_path = PI_AGENT_PODMAN_PATH;
constexpr const char *crun_path = PI_AGENT_CRUN_PATH;     // what makes the container
constexpr const char *conmon_path = PI_AGENT_CONMON_PATH; // what watches it

// Throws Failure(unavailable) with the reason and the remedy.
void require_podman(const AsRoot &root);

} // namespace pi_agent

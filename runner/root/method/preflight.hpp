// Whether bwrap, podman or docker can hold a session on this host, tried before it is needed.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <sys/types.h>

namespace pi_agent {

// --- Whether sandbox.method bwrap can work here, asked at every launch before anything is mounted.

// Throws Failure(unavailable) with the reason and the remedy.
void require_bwrap(const AsRoot &root);
// The same for the network of a policy.
void require_bwrap_network(const AsRoot &root, const NetworkPolicy &network);

// --- Whether sandbox.method docker can work here, asked at every launch before anything is mounted.

struct DockerHost {
    gid_t group = 0;   // that may ask the daemon, beside root
    std::string image; // the id of the policy's
};

// Throws Failure with the reason and the remedy.
DockerHost require_docker(const AsRoot &root, const SandboxPolicy &policy);

// The id in the daemon's description of an image. Throws Failure(unavailable) where the image brings more than files: variables and
// volumes would be the launcher's, and the agent's.
std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy);

} // namespace pi_agent

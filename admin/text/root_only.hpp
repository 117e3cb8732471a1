// The refusal of what only root can do.
#pragma once

#include "common/base/error.hpp"
#include "common/host/identity.hpp"

#include <string>
#include <unistd.h>

namespace pi_agent {

// `why` goes on after the command's name: "changes the host, so only root can run it". Throws Failure(denied) for everybody else.
inline AsRoot claim_root(const std::string &command, const std::string &why)
{
    if (::geteuid() != 0) throw Failure(ExitStatus::denied, command + " " + why + "; try 'sudo pi-agentctl " + command + "'");
    return AsRoot::claim();
}

} // namespace pi_agent

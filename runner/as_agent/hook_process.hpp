// Runs one shell script as the account that this process has, and leaves none of its processes running.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/identity.hpp"

#include <functional>

namespace pi_agent {

struct HookCall {
    std::string script;                   // absolute path, for /bin/sh
    std::vector<std::string> environment; // NAME=value, all that it gets
    FdRef directory;                      // where it runs
    std::string purpose;                  // for people: what follows "the migration hook PATH, "
    int patience_seconds;
};

// Standard input is empty. What the script started is killed when it ends, or after its patience. `tick` is called several times a second.
// An exception from it ends the script as well, so it should throw when whoever waits for the script is gone. Throws
// Failure(system_failure) unless the script ends in time with success.
void run_hook(const AsUser &self, const HookCall &call, const std::function<void()> &tick);

} // namespace pi_agent

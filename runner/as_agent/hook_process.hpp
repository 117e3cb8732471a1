// Runs one shell script as the account that this process has, and leaves none of its processes running.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

struct HookCall {
    std::string script;                   // absolute path, for /bin/sh
    std::vector<std::string> environment; // NAME=value, all that it gets
    FdRef directory;                      // where it runs
};

struct HookEnd {
    bool in_time = false;
    int status = 0;     // as of waitpid(2); 0 is success
    std::string output; // the end of what it wrote to standard output and standard error
};

// Standard input is empty. What the script started is killed when it ends, or when `deadline` has passed. `tick` is called several times a
// second. An exception from it ends the script as well, so it should throw when whoever waits for the script is gone.
HookEnd run_hook(const AsUser &self, const HookCall &call, Deadline deadline, const std::function<void()> &tick);

} // namespace pi_agent

// Starts the agent inside its unit and waits for it: the working directory, the descriptors, the last restrictions, exec.
#pragma once

#include "runner/launch_record.hpp"

#include <functional>
#include <sys/types.h>

namespace pi_agent {

// Opens the working directory beneath the project, following no link, and changes into it. Throws Failure when it is not the one that was
// asked for: it moved meanwhile.
void enter_working_directory(const LaunchRecord &record);

// Starts the agent with exactly the three descriptors of `launch`. Throws Failure when the binary cannot be run.
pid_t start_agent(const ReceivedLaunch &launch);

// Waits for `agent`, reaping whatever else is left to this process, and passing on each signal that arrives over `control`.
ExecEnded wait_for_agent(pid_t agent, FdRef control);

// Ends this process as the agent ended, so that systemd sees the same.
[[noreturn]] void end_like(const ExecEnded &ended);

} // namespace pi_agent

// Hears what to start, starts the agent inside its unit and waits for it: the working directory, the descriptors, the last restrictions,
// exec.
#pragma once

#include "runner/wire/session_messages.hpp"

#include <linux/filter.h>
#include <sys/types.h>

namespace pi_agent {

struct ReceivedLaunch {
    LaunchRecord record;
    std::array<UniqueFd, 3> stdio; // complete
    UniqueFd terminal;             // the agent's end of the session's pty, when it has one
    UniqueFd mode_changer;         // its channel, when there is one
};

// Throws ProtocolError; the runner is trusted, but a cut-off record must not become half a command.
ReceivedLaunch receive_launch(FdRef channel, Deadline deadline);

// Throws Failure(unavailable) where nothing is mounted at one of the mount points: then the runner put the mount into another process'
// mount table.
void require_mount_points(const LaunchRecord &record);

// Opens the working directory beneath the project, following no link, and changes into it. Throws Failure when it is not the one that was
// asked for: it moved meanwhile.
void enter_working_directory(const LaunchRecord &record);

// Makes the session's pty the controlling terminal of this process's session, where the launch has one.
void take_terminal(const ReceivedLaunch &launch);

// Starts the agent, in a process group of its own and in the background of its terminal, with exactly the three descriptors of `launch`.
// `calls`: the filter of this session (runner/filter/seccomp_filter.hpp), which this process itself stays out of. Throws Failure when the
// binary cannot be run.
pid_t start_agent(const ReceivedLaunch &launch, const std::vector<sock_filter> &calls = {});

// Waits for `agent`, reaping whatever else is left to this process, passing on each signal that arrives over `control`, and telling there
// when the agent was stopped.
ExecEnded wait_for_agent(pid_t agent, FdRef control);

// Ends this process as the agent ended, so that systemd sees the same.
[[noreturn]] void end_like(const ExecEnded &ended);

} // namespace pi_agent

// The runner as the wrapper's child, through sudo: its standard input is our socket, nothing is passed in arguments or environment.
#pragma once

#include "common/base/fd.hpp"

#include <string>
#include <sys/types.h>

namespace pi_agent {

class RunnerProcess {
public:
    // Starts sudo in a session of its own, so that the terminal's signals reach only the wrapper.
    RunnerProcess();

    [[nodiscard]] FdRef channel() const noexcept { return channel_; }
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }
    // Call it on SIGCHLD.
    void reap();
    // Throws Failure if the runner, or a sudo that waits for it, was killed: the session ended with it, whatever the agent did.
    void require_orderly_end();
    // The reason why no runner answered, from sudo's exit status and standard error, as a Failure to throw.
    [[noreturn]] void explain_silence();

private:
    std::string read_complaint();

    UniqueFd channel_;
    UniqueFd complaint_; // sudo's standard error
    pid_t pid_ = -1;
    bool ended_ = false;
    int status_ = 0;
};

} // namespace pi_agent

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
    // To be called on SIGCHLD.
    void reap();
    // Throws Failure when the runner, or a sudo that waits for it, was killed: the session ended with it, however the agent took that.
    void require_orderly_end();
    // Why no runner ever answered, from sudo's exit and its words on standard error; a Failure to throw.
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

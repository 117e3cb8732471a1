// The wrapper's signals: which it watches, and how it stops itself the way the shell expects of a job.
#pragma once

#include "common/base/fd.hpp"

#include <csignal>

namespace pi_agent {

class JobSignals {
public:
    // Blocks and watches what is passed on or handled; what the caller ignores stays ignored (nohup, background jobs).
    JobSignals();

    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    struct Signal {
        int number;         // 0: none
        bool from_keyboard; // the kernel's, for the whole job: a key, or a terminal that hung up
    };
    // The next pending one that means something.
    Signal next();
    // Something for the agent is pending: it is passed on before the job is stopped.
    [[nodiscard]] bool are_waiting() const;
    // Stops the whole job with `number` (TSTP, TTOU), as the terminal would, and returns when it is continued. False when nothing stopped:
    // nobody would continue an orphaned process group, so the kernel does not stop it (setpgid(2)).
    bool stop_job(int number);

private:
    UniqueFd fd_;
    sigset_t watched_{};
};

} // namespace pi_agent

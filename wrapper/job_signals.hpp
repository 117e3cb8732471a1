// The wrapper's signals: which ones it watches, and how it stops itself as the shell expects from a job.
#pragma once

#include "common/base/fd.hpp"

#include <csignal>

namespace pi_agent {

class JobSignals {
public:
    // Blocks and watches the signals that it passes on or handles. Signals that the caller ignores stay ignored (nohup, background jobs).
    JobSignals();

    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    struct Signal {
        int number;         // 0: none
        bool from_keyboard; // from the kernel, for the whole job: a key, or a hang-up
    };
    // The next pending signal that matters.
    Signal next();
    // A signal for the agent is pending, to pass on before the job stops.
    [[nodiscard]] bool are_waiting() const;
    // Stops the whole job with `number` (TSTP, TTOU), as the terminal would, and returns when it is continued. False if nothing stopped:
    // the kernel does not stop an orphaned process group, which nobody would continue (setpgid(2)).
    bool stop_job(int number);

private:
    UniqueFd fd_;
    sigset_t watched_{};
};

} // namespace pi_agent

// srun as a child of the carrier's: asks for a job, and connects its task's input and output with two pipes.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"
#include "common/base/request.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

struct JobCommand;

class SrunProcess {
public:
    // It ends when this process does. Throws Failure(no_node) if it cannot be started.
    explicit SrunProcess(const JobCommand &command);

    [[nodiscard]] UniqueFd take_input() noexcept { return std::move(input_); }   // what is written is the task's input
    [[nodiscard]] UniqueFd take_output() noexcept { return std::move(output_); } // the task's output
    [[nodiscard]] FdRef error() const noexcept { return error_; }
    // Reads what it, or the task, says on standard error, and closes that at its end.
    void hear_error();

    // Takes the request for a job back.
    void cancel();
    // It ends by itself: its words for a message, with a colon before them, or nothing.
    std::string explain_end();
    // All that was said, harmless, once it has ended, by the deadline or until `impatience` can be read.
    std::string wait_for_end(Deadline deadline, FdRef impatience);

private:
    UniqueFd input_;
    UniqueFd output_;
    UniqueFd error_;
    pid_t pid_ = -1;
    std::string said_;
};

// A message of the node's for this host's wrapper: unlike this host's runner, whatever runs there is heard, so texts become harmless.
std::string harmless_message(RunnerMessage message);

} // namespace pi_agent

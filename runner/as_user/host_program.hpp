// Runs one of the host's programs with the rights of the child that this is called in, with bounds on time and output.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct ProgramOutput {
    enum class End { exited, killed, not_installed, late, too_long };
    End end = End::killed;
    int status = 0;        // where it exited
    std::string output;    // standard output, at most `limit` bytes
    std::string complaint; // the beginning of standard error
};

// `command[0]` is a name, looked for in the directories of the system's own programs. `environment` is all that it gets (NAME=VALUE),
// beside a PATH of these directories. It works in the current directory, its standard input is empty, or the first of `inputs`; a second
// one is descriptor 3. After the deadline, or when it writes
// more than `limit` bytes, it is killed. Never as root, which nobody but a child's task could call this as.
ProgramOutput run_host_program(const AsUser &user, const std::vector<std::string> &command, const std::vector<std::string> &environment,
                               std::size_t limit, Deadline deadline, const std::vector<int> &inputs = {});

} // namespace pi_agent

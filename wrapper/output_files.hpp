// Standard output and error that are the user's files, as pipes for the session: a program inside can open /dev/stdout again.
#pragma once

#include "common/base/channel.hpp"

#include <array>
#include <sys/types.h>

namespace pi_agent {

// The user owns the file, so a program inside could write it and not open it. The session gets a pipe instead, and a child of this process
// copies: into the descriptor that the user's shell made, so that its place and O_APPEND count as before. The child ends when no process of
// the session holds the pipe any more, even if this process was killed. One pipe serves both where they are one file.
class OutputFiles {
public:
    // Only files that are open to be written and that others may not write. Throws Failure.
    OutputFiles();
    OutputFiles(const OutputFiles &) = delete;
    OutputFiles &operator=(const OutputFiles &) = delete;
    // The session has ended: lets go of the pipes, waits until all is in the files, and says what is not. What takes too long is killed.
    ~OutputFiles();

    // What the session gets; borrowed.
    [[nodiscard]] std::array<int, 3> stdio() const;

private:
    struct Copy {
        const char *name; // for people
        UniqueFd pipe;
        pid_t child;
    };
    std::array<int, 3> stdio_;
    std::vector<Copy> copies_;
};

} // namespace pi_agent

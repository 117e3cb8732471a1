// Starts tar and npm in the unit that this program has for itself: what they leave running ends with it.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

struct ProgramOutcome {
    int status = 0;     // exit code, or 128 and the signal
    std::string output; // the end of what it wrote, to either stream
};

// Runs a program by its path, in `directory`, without input, and waits for it. `variables` ("NAME=value") are all that it gets. Throws
// SystemFailure; ends this program where nobody listens to it any more.
ProgramOutcome run_fetch_program(const std::vector<std::string> &arguments, const std::vector<std::string> &variables,
                                 const std::string &directory);

// Whether somebody listens to what this program says. pi-agentctl may have been killed: then there is nothing left to do.
bool is_heard();

} // namespace pi_agent

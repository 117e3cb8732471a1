// Runs a tool of the system for pi-agentctl, with a fixed environment and nothing of the administrator's shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct ProgramResult {
    int status;         // exit code, or 128 and the signal
    std::string output; // stdout and stderr together
};

// Runs `arguments` (the first names a program in the system's own directories) with `input` as its standard input, and waits for it.
// Throws Failure(configuration) when it is not installed.
ProgramResult run_program(const std::vector<std::string> &arguments, std::string_view input = {});

} // namespace pi_agent

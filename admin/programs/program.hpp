// Runs a tool of the system for pi-agentctl, with a fixed environment and nothing of the administrator's shell.
#pragma once

#include "common/base/fd.hpp"

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

// The same for a program that is a user's, or becomes one (user_program.hpp), and can be traced then: in a session without a terminal
// (setsid(2)) and with a session keyring of its own (session-keyring(7)), and killed with its process group when it, or its output, is not
// at the end in time. Throws Failure(unavailable) then.
ProgramResult run_program_apart(const std::vector<std::string> &arguments, int patience_seconds);

// The same at this terminal, for an editor: with this process' standard input, output and error, and `variables` ("NAME=value") beside the
// fixed ones. The first of `arguments` may be an absolute path. What is typed to interrupt it does not end this process. Returns the exit
// code, or 128 and the signal.
int run_at_terminal(const std::vector<std::string> &arguments, const std::vector<std::string> &variables);

// For who starts programs by another way: their variables ("NAME=value"), a file in memory that is their input (instead of a pipe: a
// program may read it whenever it likes, and nobody waits for anybody), how much of their output is kept (bytes), and what is said of one
// that does not end.
std::vector<std::string> program_variables();
UniqueFd in_memory_input(std::string_view text);
inline constexpr std::size_t program_output_limit = std::size_t{1} << 20U;
inline constexpr const char *program_too_late = "a program did not end in time";

// Throws Failure(configuration) when the program is not installed: to be called before a first change, not after it.
void require_program(const std::string &name);

// Whether it is installed.
bool has_program(const std::string &name);

// The output of a program as one harmless line for a message.
std::string one_line(const std::string &output);

} // namespace pi_agent

// What of the command line of pi-agentctl help, completion and messages say.
#pragma once

#include <CLI/CLI.hpp>

namespace pi_agent {

// The commands below `app`, in the order of its help, without those that it hides.
std::vector<const CLI::App *> commands_below(const CLI::App &app);

// For the shells' completions: candidates for the last of `words`, which are the command line after the program's name, found by walking
// the same commands and options that parse it. A line for each candidate: the word, a tab, what it means. Of values it knows the keys of
// the policy.
std::string complete(const CLI::App &app, std::vector<std::string> words);

} // namespace pi_agent

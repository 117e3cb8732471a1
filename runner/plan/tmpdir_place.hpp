// Where the temporary directory lies that a user names (--pi-agent-tmpdir), by its name alone.
#pragma once

#include <string>

namespace pi_agent {

// Throws Failure(denied): "denied: --pi-agent-tmpdir: ".
[[noreturn]] void refuse_tmpdir(const std::string &problem);

// `named` beneath the root, without "." and "..": relative to the working directory, or absolute. Throws
// Failure(denied) when it does not lie in what is shown.
std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below);

} // namespace pi_agent

// The name under which the agent's home has a project: ~/projects/NAME-HASH, the same at every start.
#pragma once

#include <string>

namespace pi_agent {

constexpr const char *alias_directory = "projects"; // beneath the home

// "demo-1f3a99c2" for the canonical path (any bytes) of a project: its last component, as far as its characters are harmless, and a hash of
// all of it (FNV-1a, 64 bits, folded), because many directories have one name. The hash keeps them apart, it protects nothing.
std::string alias_of(const std::string &project_path);

} // namespace pi_agent

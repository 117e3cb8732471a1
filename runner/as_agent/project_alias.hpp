// The name under which the agent's home has a project: ~/projects/NAME-HASH, the same at every start.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <string>

namespace pi_agent {

// "demo-1f3a99c2" for the canonical path (any bytes) of a project: its last component, as far as its characters are harmless, and a hash of
// all of it (FNV-1a, 64 bits, folded), because many directories have one name. The hash keeps them apart, it protects nothing.
std::string alias_of(const std::string &project_path);

// For a process of the agent's account. Makes ~/projects/ALIAS a link to where the session shows the project. Leaves alone what the agent
// put there, and follows no link. Returns what keeps it from that, empty for nothing.
std::string link_alias(const AsUser &agent, FdRef home, const std::string &alias, const std::string &target);

// From root, in a child that is the agent: makes it a directory, to mount on. A file in its place is renamed, a link goes.
void make_alias_directory(const AsRoot &root, const Account &agent, FdRef home, const std::string &alias);

extern const char *const alias_directory; // beneath the home

} // namespace pi_agent

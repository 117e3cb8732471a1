// The place of a project in the agent's home.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/project_alias.hpp"

#include <string>

namespace pi_agent {

// For a process of the agent's account. Makes ~/projects/ALIAS a link to where the session shows the project. Leaves alone what the agent
// put there, and follows no link. Returns what keeps it from that, empty for nothing.
std::string link_alias(const AsUser &agent, FdRef home, const std::string &alias, const std::string &target);

// The same: makes it a directory, to mount on. A file in its place is renamed, a link goes.
void make_alias_directory(const AsUser &agent, FdRef home, const std::string &alias);

} // namespace pi_agent

// Which programs of the host's a session can use, and how the agent's own is started.
#pragma once

#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// --- Whether the host has fd and rg where the agent looks for them.

// Which of "fd" and "rg" are in none of these directories, the host's part of the agent's PATH. The agent takes fd under Debian's name,
// fdfind, too. What the agent put into its own home is not looked for.
std::vector<std::string> missing_search_tools(const std::vector<std::string> &directories = system_path());

// --- Whether the agent's program can be run past the wrapper (wrapper.hide_direct_binary): an upgrade by npm or apt may have opened it
// again.

// By its mode and those of the directories on the way to it, links resolved. False for what is not there.
bool can_be_run_by_all(const std::string &path);

// What the user is told at a start; none when it is hidden, or need not be.
std::optional<std::string> open_program_notice(const Policy &policy);

} // namespace pi_agent

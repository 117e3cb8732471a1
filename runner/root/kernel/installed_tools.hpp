// Whether the host has fd and rg where the agent looks for them.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

// Which of "fd" and "rg" are in none of these directories. The agent takes fd under Debian's name, fdfind, too.
std::vector<std::string> missing_search_tools(const std::vector<std::string> &directories);
// The same in the host's part of the agent's PATH. What the agent put into its own home is not looked for.
std::vector<std::string> missing_search_tools();

} // namespace pi_agent

// pi-agentctl version: what runs on this host, in one answer for a report of a fault.
#pragma once

#include <ostream>

namespace pi_agent {

// What cannot be found out is said as such, and no failure. The agent's program is asked as root alone, by a process of the agent's
// account.
void run_version(bool json, std::ostream &out);

} // namespace pi_agent

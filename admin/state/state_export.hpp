// pi-agentctl state export: the agent's own records of its sessions, given to the user whose agent it is.
#pragma once

#include <ostream>
#include <string>

namespace pi_agent {

// Copies what lies in `sessions` of the agent's directory into `directory`, which is made, or empty, and belongs to the user: a child with
// the agent's rights reads, one with the user's rights writes, and root handles neither's paths nor bytes. Throws Nothing when there is no
// state, or nothing in it.
void run_state_export(const std::string &user, const std::string &directory, std::ostream &out);

} // namespace pi_agent

// pi-agentctl state prune and reset, and what `remove --state` takes away: each user's part by a child with the agent's rights.
#pragma once

#include "common/host/identity.hpp"

#include <optional>
#include <ostream>
#include <string>

namespace pi_agent {

// Removes the caches in the homes of users that have no session now, and temporary files that sessions left. `yes`: do not ask.
void run_state_prune(const std::optional<std::string> &user, bool yes, std::ostream &out);

// Empties a user's home and forgets what is known of it: the next start is like the first. Throws Failure(limit) while a session lives.
void run_state_reset(const std::string &user, bool yes, std::ostream &out);

// Removes a state directory with all that pi-agent made in it; what it did not make stays, and is a Failure(configuration).
void remove_all_state(const AsRoot &root, const std::string &state_dir);

} // namespace pi_agent

// What is kept for a user: measured, handed out, removed. `pi-agentctl state`.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/own/session_views.hpp"

#include <optional>
#include <ostream>
#include <string>

namespace pi_agent {

// --- pi-agentctl state: what is kept for each user, and how large it is.

// The state of one user. Throws Nothing without one.
UserState find_state(const AsRoot &root, const std::string &state_dir, const std::string &user);

// The command.
void run_state(const std::optional<std::string> &user, bool json, std::ostream &out);

// --- pi-agentctl state export: the agent's own records of its sessions, given to the user whose agent it is.

// Copies the content of `sessions` in the agent's directory into `directory`, which is made, or empty, and belongs to the user. A child
// with the agent's rights reads, one with the user's rights writes, and root handles neither's paths nor bytes. Throws Nothing if there is
// no state, or nothing in it.
void run_state_export(const std::string &user, const std::string &directory, std::ostream &out);

// --- pi-agentctl state prune and reset, and what `remove --state` takes away: each user's part by a child with the agent's rights.

// Removes the caches in the homes of users that have no session now, and temporary files that sessions left. `yes`: do not ask.
void run_state_prune(const std::optional<std::string> &user, bool yes, std::ostream &out);

// Empties a user's home and forgets what is known of it: the next start is like the first. Throws Failure(limit) while a session lives.
void run_state_reset(const std::string &user, bool yes, std::ostream &out);

// Removes all that is kept for one user, with its directory; `name` is the user's in paths. Throws Nothing without any, Failure(limit)
// while a session of theirs lives.
void remove_state_of(const AsRoot &root, const std::string &state_dir, const std::string &name);

// Removes a state directory with all that pi-agent made in it; what it did not make stays, and is a Failure(configuration).
void remove_all_state(const AsRoot &root, const std::string &state_dir);

} // namespace pi_agent

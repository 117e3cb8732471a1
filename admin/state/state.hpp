// pi-agentctl state: what is kept for each user, and how large it is.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// The state of one user, as it lies there: whose home it is says the home itself, not the policy.
struct UserState {
    std::string user;
    std::string path; // STATE_DIR/users/USER
    Account agent;    // the owner of the home; "uid 999" where the user database has none of that number
    UniqueFd home;    // O_RDONLY directory
};

// In the order of their names; of `user` alone where one is given. What is no user's state, or only just begun, is left out.
std::vector<UserState> find_states(const AsRoot &root, const std::string &state_dir, const std::optional<std::string> &user);

// That of one. Throws Nothing when there is none.
UserState find_state(const AsRoot &root, const std::string &state_dir, const std::string &user);

// How many sessions of this user live, those that are being prepared included.
std::size_t count_live_sessions(const AsRoot &root, const std::string &user);

// The command.
void run_state(const std::optional<std::string> &user, bool json, std::ostream &out);

} // namespace pi_agent

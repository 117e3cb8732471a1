// pi-agentctl init: a first policy, from the users and directories of this host.
#pragma once

#include "common/host/account.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

struct InitOrder {
    std::vector<std::string> users;    // --user; none: everybody on this host who could be one
    std::vector<std::string> roots;    // --root, for these users
    std::optional<std::string> output; // "-": standard output; none: the policy of this host
};

// One user of the policy to be; without roots it is only named in a comment.
struct Candidate {
    std::string name;
    std::vector<std::string> roots; // as the policy writes them
};

// The text of a policy that gives these users these roots. Throws Failure(usage) when no user has one.
std::string init_text(const std::vector<Candidate> &candidates);

// Whether this account is a person's: an ordinary number (login.defs(5)), a login shell, and a home of its own.
bool is_persons(const Account &account, const std::string &shell, unsigned first_uid, unsigned last_uid);

// The people of this host, by that.
std::vector<Account> find_people();

// Writes it, a policy that passes the check where the agent is installed, and never over a file that is there: Failure(usage) then.
void run_init(const InitOrder &order, std::ostream &out, std::ostream &notes);

} // namespace pi_agent

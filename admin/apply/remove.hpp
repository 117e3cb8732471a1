// pi-agentctl remove: undoes what apply did to this host.
#pragma once

#include <ostream>

namespace pi_agent {

struct RemoveOrder {
    bool accounts = false;    // the agents' accounts too; only with `state`, whose files would be left to whoever gets their numbers
    bool state = false;       // and what is kept for each user
    bool keep_hidden = false; // the agent's program stays closed: nobody is to run it without a sandbox because that is gone
    bool yes = false;         // do not ask
    bool dry_run = false;
};

// The sudo rule goes first, so that nobody can start what goes next; then the agent's program, and what was hidden beside it, get their
// owners and modes back. The policy stays. Throws
// Failure(limit) while a session lives.
void run_remove(const RemoveOrder &order, std::ostream &out);

} // namespace pi_agent

// The wrapper's own look at the policy: refuses early, and says why an agent with a closed network failed.
#pragma once

#include "common/as_user/user_paths.hpp"
#include "wrapper/carrier.hpp"

namespace pi_agent {

// The message for a user whose agent failed while the policy closes its network. Agents only say "Connection error", after a long silence.

// A line that names the policy's key, or the user's own option (--pi-agent-network); empty if the network is open, or if the agent
// succeeded. Nobody here knows why the agent failed. So it says what was out of reach, not that this was the reason.
std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended);

// The wrapper's own look at the policy: refuses early, with friendly messages. The runner decides again, and only that counts.

// The policy's values for the wrapper itself.
struct EarlyLook {
    std::string decision; // a sentence about what is allowed, for --pi-agent-debug
    std::string cwd;      // canonical
    std::string root;     // the root that contains it
    std::string home;     // of the user
    ProjectsPolicy projects;
    NetworkPolicy network;
    bool clipboard;                        // the agent may set the user's clipboard
    AgentPlaces agents;                    // where agents of this user write
    std::vector<std::string> read_as_user; // by a start
    std::optional<JobCommand> job;         // sessions run in jobs of the cluster, for which this asks
};

// Opens the working directory and looks. Throws EarlyRefusal: denied, configuration or unavailable.
UniqueFd open_cwd();
EarlyLook refuse_early(FdRef cwd, const Narrowing &narrowing, const std::vector<std::string> &allow);

// best_effort: the user's own entry in the journal, whose _UID says who wrote it. In a session there is no journal.
void record_refusal(const EarlyRefusal &refusal, Program program) noexcept;

} // namespace pi_agent

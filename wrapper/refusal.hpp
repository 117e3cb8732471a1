// What pi decides before it asks: its own options, and its look at the policy.
#pragma once

#include "common/as_user/user_paths.hpp"

#include "wrapper/carrier.hpp"

namespace pi_agent {

// --- The wrapper's own options: they begin with --pi-agent- and come first; everything else goes to the agent unchanged.

struct WrapperOptions {
    bool help = false;
    bool explain = false;
    bool on_node = false; // for a session that was asked for elsewhere (wrapper/carrier.hpp)
    Request request = {}; // what of it the options say; the arguments go to the agent, or to the shell that replaces it
};

// `pi update` without a target, or with one that is pi itself: root owns the agent's program, and no session can change it.
bool asks_for_self_update(const std::vector<std::string> &agent_arguments);

// Throws Failure(usage).
WrapperOptions parse_options(int argc, const char *const *argv);

extern const char *const wrapper_help;

// For a user whose agent failed while the policy closes its network. Agents only say "Connection error", after a long silence. A line that
// names the policy's key, or the user's own option (--pi-agent-network); empty if the network is open, or if the agent succeeded. Nobody
// here knows why the agent failed. So it says what was out of reach, not that this was the reason.
std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended);

// What the wrapper itself finds in the policy, to refuse early, with friendly messages. The runner decides again, and only that counts.
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

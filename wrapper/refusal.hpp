// The wrapper's own look at the policy: refuses early and in friendly words. The runner decides again, and only that counts.
#pragma once

#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/base/request.hpp"
#include "common/decide/agent_places.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What the wrapper takes from the policy for itself.
struct EarlyLook {
    std::string decision; // a sentence on what was allowed, for --pi-agent-debug
    std::string cwd;      // canonical
    std::string root;     // that holds it
    std::string home;     // of the user
    ProjectsPolicy projects;
    NetworkPolicy network;
    bool clipboard;                        // the agent may set its user's
    AgentPlaces agents;                    // where agents of this user write
    std::vector<std::string> read_as_user; // by a start
};

// A refusal that the runner knows nothing of, so that the wrapper records it. Whatever the runner refuses, it has recorded.
class EarlyRefusal : public Failure {
public:
    explicit EarlyRefusal(const Failure &failure) : Failure(failure) {}
};

// Opens the working directory and looks. Throws EarlyRefusal: denied, configuration or unavailable.
UniqueFd open_cwd();
EarlyLook refuse_early(FdRef cwd);

// best_effort: the user's own entry in the journal, which says by its _UID whose word it is. In a session there is no journal.
void record_refusal(const EarlyRefusal &refusal, Program program) noexcept;

} // namespace pi_agent

// Where a user's agents can have written. What is there is content, not an instruction: no process that acts for the user follows a link
// that leads out (common/decide/user_paths.hpp).
#pragma once

#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// A directory in which agents write: a root of the user, or the directory of all agents' state.
struct AgentPlace {
    std::string path; // canonical
    dev_t device;     // of the opened directory, the same by every other path to it
    ino_t inode;
};

struct AgentPlaces {
    std::vector<AgentPlace> places;
    ProjectScope scope = ProjectScope::root; // project: a session sees only a part of its root
    std::vector<PolicyPath> masks;           // what no session sees in its project
};

// With these roots only. `policy` is the caller's (common/decide/effective.hpp). What one root masks counts as masked in all of them: here
// nobody knows which of them a session shows.
AgentPlaces places_of_state(const Policy &policy, const AccessRules &rules, const std::vector<AgentPlace> &roots = {});

// For processes of `user`. Leaves out unusable roots, which no session sees.
std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user);
AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user);

// Whether a session that shows this canonical path, in one of these places, masks it.
bool is_masked(const AgentPlaces &places, const std::string &path);

} // namespace pi_agent

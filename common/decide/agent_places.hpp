// Where agents of a user can have written. What lies there is content and no instruction: nobody who acts for the user follows a link in it
// that leads out (common/decide/user_paths.hpp).
#pragma once

#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// A directory that agents write in: a root of the user's, or the directory of all agents' state.
struct AgentPlace {
    std::string path; // canonical
    dev_t device;     // of the directory as it was opened: by whatever other path it is reached, it is the same
    ino_t inode;
};

struct AgentPlaces {
    std::vector<AgentPlace> places;
    ProjectScope scope = ProjectScope::root; // project: a session sees a part of its root only
    std::vector<PolicyPath> masks;           // what no session sees of its project
};

// With these roots, and no others.
AgentPlaces places_of_state(const Policy &policy, const std::vector<AgentPlace> &roots = {});

// For processes of `user`. Roots that cannot be used are left out: nobody is shown one.
std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user);
AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user);

// Whether what is at a canonical path in one of these places is masked in a session that would show it.
bool is_masked(const AgentPlaces &places, const std::string &path);

} // namespace pi_agent

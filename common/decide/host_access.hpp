// Whether a session reaches a host, and which rule says so: for people who ask. The gate decides by the same rules (gate/).
#pragma once

#include "common/policy/policy.hpp"

#include <string>

namespace pi_agent {

enum class Reach {
    yes,
    no,
    unknown, // a list of addresses knows no names
};

struct HostAccess {
    Reach reach;
    std::string rule;          // as a sentence's end: "a rule names it (*.example.org)"
    std::string key;           // of the policy, that would change it: "network.hosts"
    Position where;            // of what says so; of no file where it is the default
    bool may_be_added = false; // by the user, for one session
};

// Of a policy as it holds for the session (common/decide/effective.hpp). `asked` is one host, and no wildcard.
HostAccess host_access(const Policy &policy, const HostRule &asked);

} // namespace pi_agent

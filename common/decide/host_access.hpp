// Whether a session reaches a host, and which rule says so: for people who ask, outside and inside. The gate compares by the same code
// (common/policy/host_rule.hpp).
#pragma once

#include "common/policy/policy.hpp"

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

// Of a policy as it holds for the session (common/decide/effective.hpp). `asked` is one host (parse_host_question).
HostAccess host_access(const NetworkPolicy &network, const std::vector<ProviderRule> &providers, const HostRule &asked);

// Who asked with this text, and was answered about that host, may have meant a file: a line that says so, or nothing.
std::string hint_of_file(const std::string &question, const HostRule &taken_for);

} // namespace pi_agent

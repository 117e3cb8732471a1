// Which entry of the policy applies to a caller: a pure function of policy and account.
#pragma once

#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <variant>

namespace pi_agent {

// A root that the policy gives to the caller, before resolution.
struct GrantedRoot {
    RootSpec spec;
    std::optional<Gid> by_group; // set when a group entry granted it; its members keep that group inside
};

// What the policy grants to one caller. Made only by find_access_rules.
struct AccessRules {
    std::string entry; // "users.alice" or "users.%devs, users.%ops"
    Position where;
    std::vector<GrantedRoot> roots;
    std::string config_directory; // absolute
    std::string agent_account;
    Environment env;                         // the per-user layer
    std::optional<std::string> ssh_key = {}; // absolute
};

// The caller may not use pi at all; `text` is for the user and says what to do.
struct NotAuthorised {
    std::string text;
};

// The caller's own entry beats group entries; without one, the roots of all their groups join, and conflicting scalars are a PolicyError.
std::variant<AccessRules, NotAuthorised> find_access_rules(const Policy &policy, const Account &caller, const std::string &policy_file);

} // namespace pi_agent

// The accounts that agents run as: which the policy needs, what is wrong with those there are, and making those that are missing.
#pragma once

#include "admin/host/changes.hpp"
#include "common/base/problems.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

struct AgentAccount {
    std::string name;
    std::string user; // whose agent, "" for an account of several
    Position where;   // what in the policy asks for it
    std::string key;
};

// `name` as systemd-sysusers takes it: without dots, at most 31 bytes.
std::string creatable_name(std::string name);

// Names of the members of a group, primary and supplementary.
std::vector<std::string> group_members(const std::string &group);
using MembersOf = std::function<std::vector<std::string>(const std::string &group)>;

// Every account that an agent may run as under `policy`, each once. Group entries count the members of today.
std::vector<AgentAccount> needed_agent_accounts(const Policy &policy, const MembersOf &members_of);

// Reports accounts that exist but must not be an agent's, those that are missing and cannot be made, and users that could reach the
// agent's program by its group.
void check_agent_accounts(const Policy &policy, const std::vector<AgentAccount> &needed, Problems &problems);

// What is missing, as input of systemd-sysusers (sysusers.d(5)).
struct MissingAccounts {
    bool group = false;
    std::vector<AgentAccount> accounts;
    std::vector<std::string> members; // existing accounts that are not in the agents' group
};
MissingAccounts find_missing(const Policy &policy, const std::vector<AgentAccount> &needed);
std::string sysusers_text(const Policy &policy, const MissingAccounts &missing);

// Makes what is missing; where the policy says `create_user: false` that is a PolicyError.
void create_accounts(const AsRoot &root, const Policy &policy, const std::vector<AgentAccount> &needed, Changes &changes);

} // namespace pi_agent

// The accounts and groups that pi-agent makes.
#pragma once

#include "admin/host/root_files.hpp"

namespace pi_agent {

// --- The accounts that agents run as: which ones the policy needs, what is wrong with existing ones, and making the missing ones.

struct AgentAccount {
    std::string name;
    std::string user; // whose agent, "" for an account of several
    Position where;   // what in the policy asks for it
    std::string key;
};

// `name` as systemd-sysusers takes it (can_be_created): without dots, and cut.
std::string creatable_name(std::string name);

// Names of the members of a group, primary and supplementary.
std::vector<std::string> group_members(const std::string &group);
using MembersOf = std::function<std::vector<std::string>(const std::string &group)>;

// Every account that an agent may run as under `policy`, each once. Group entries count the members of today.
std::vector<AgentAccount> needed_agent_accounts(const Policy &policy, const MembersOf &members_of);

// Reports accounts that exist but must not be an agent's, missing ones that cannot be made, and users that could reach the agent's program
// through its group.
void check_agent_accounts(const Policy &policy, const std::vector<AgentAccount> &needed, Problems &problems);

// What is missing, as input of systemd-sysusers (sysusers.d(5)).
struct MissingAccounts {
    bool group = false;
    std::vector<AgentAccount> accounts;
    std::vector<std::string> members; // existing accounts that are not in the agents' group
};
MissingAccounts find_missing(const Policy &policy, const std::vector<AgentAccount> &needed);
std::string sysusers_text(const Policy &policy, const MissingAccounts &missing);

// Makes what is missing; if the policy says `create_user: false`, that is a PolicyError.
void create_accounts(const AsRoot &root, const Policy &policy, const std::vector<AgentAccount> &needed, Changes &changes);

// --- Accounts that apply made, and taking them back.

struct MadeAccount {
    Account account;
    std::string user; // whose agent's, as in paths (short_name); empty for an account of several
};
// Those with the usual state directory as their home, no shell, and the purpose that apply gives them. A user can change none of an
// account's home and shell; it leaves accounts that somebody else made.
std::vector<MadeAccount> made_agent_accounts();

// Throws Failure(system_failure) with what userdel(8) says: it removes no account with a process.
void remove_agent_account(const AsRoot &root, const std::string &name, Changes &changes);
// By groupdel(8), likewise.
void remove_group(const std::string &name);

// --- What still belongs to the agents' group, whose number is about to be free: whoever gets that number next would own it.

// Where pi-agent or its administrator has reason to give something to the group: what apply hides or has hidden, and /etc/pi-agent.
std::set<std::string> places_of_group(const AsRoot &root, const Policy &policy);

// Throws Failure(configuration), which names the first of it at these places and below them, and says what to do.
void require_nothing_of_group(const std::set<std::string> &places, const std::string &group);

} // namespace pi_agent

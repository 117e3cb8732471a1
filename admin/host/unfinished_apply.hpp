// What the host was before a change that is not finished: kept on disk, so that the change can go back by itself, also after a kill.
#pragma once

#include "admin/host/agent_binary.hpp"

namespace pi_agent {

// The policy's files, where the same command replaces them (rollback, edit).
struct PolicyChange {
    PolicyFiles before, wanted;
};

// Whether each of these files is one of the two policies: the command itself put it there, however far it came.
bool is_between(const PolicyFiles &installed, const PolicyChange &change);

// Everything that apply may change, as it was. What apply does not change is not in it.
struct HostBefore {
    std::string command;                                       // that goes on with it now: an id that no other command has
    std::string group, state_dir;                              // of the policy that is applied
    bool had_group = true;                                     // the agents' group
    std::vector<std::string> new_accounts, new_members;        // that did not exist; that were not in the group
    std::map<std::string, std::optional<FormerRights>> places; // canonical paths; without rights: a directory that did not exist
    std::optional<std::string> rule;                           // of sudo; none: there was none
    std::optional<std::string> hidden;                         // the notes of what is hidden (agent_binary.hpp)
    std::optional<std::string> state_note;                     // of where the homes are; none: where they are by default
    std::string command_name;                                  // what apply called the command
    std::optional<PolicyChange> policy;
};

// The host as it is now. Throws what apply would throw where it cannot look.
HostBefore look_at_host(const AsRoot &root, const Policy &policy);

// For a command that goes on with what another one began: what the other one found counts, and what it did not look at is as it is now.
HostBefore joined(HostBefore earlier, const HostBefore &now);

// The file, in /var/lib/pi-agent/applied, root 0600: as text and back. Throws Failure(configuration) for a damaged one.
std::string to_text(const HostBefore &before);
HostBefore host_before_of(const std::string &text);

// Empty if the last change was finished. Writing replaces it in one step, on disk; the directory must exist.
std::optional<HostBefore> read_unfinished(const AsRoot &root);
void write_unfinished(const AsRoot &root, const HostBefore &before);
void remove_unfinished_note(const AsRoot &root);

// Makes the host what it was: first the policy's files, if nobody else has changed them, and the sudo rule, so that nobody can start what
// goes back next. Accounts and directories stay if anything is in them. True if all that can go back has; the rest is told on `warnings`.
bool go_back(const AsRoot &root, const HostBefore &before, Changes &changes, std::ostream &warnings);

} // namespace pi_agent

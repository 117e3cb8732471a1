// Where the agents' homes are, and how they get to where the policy wants them: `pi-agentctl state move`.
#pragma once

#include "admin/host/root_files.hpp"
#include "common/base/fd.hpp"
#include "common/base/problems.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <ostream>
#include <string>

namespace pi_agent {

// --- What this host knows of the place of its state: a file of root's beside the policies that were applied. Without the file, the state
// is at the default place.

struct StatePlace {
    std::string place = default_state_dir;
    std::string next = {};   // a move there has begun; the homes are there as soon as it has a directory `users`
    std::string former = {}; // the homes left this place, but not all of their files are removed from there
    [[nodiscard]] bool is_settled() const { return next.empty() && former.empty(); }
};
StatePlace read_state_place(const AsRoot &root);
void write_state_place(const AsRoot &root, const StatePlace &place);

// Whether users' homes are there.
bool holds_homes(const AsRoot &root, const std::string &state_dir);

// Reports a place that others than root can change or lead elsewhere, and homes that are not where the policy says. Without `root`, what
// everybody can see.
void check_state_place(const Policy &policy, const AsRoot *root, Problems &problems);

// For apply, when the directories are there: notes a new place to which nothing has to be moved.
void settle_state_place(const AsRoot &root, const Policy &policy, Changes &changes);

// --- The copy of a tree that others wrote, by descriptors. It enters no other file system and follows no link.

// Copies what `from` holds into the empty directory `to`, which only root may enter until it is whole: owners, modes, times, access lists,
// extended attributes of users, hard links and holes. Capabilities of files are not copied. `path` names `from` in messages.
void copy_tree(const AsRoot &root, FdRef from, FdRef to, const std::string &path);

// Throws Failure that names the first difference. It reads all bytes again.
void require_same_tree(FdRef from, FdRef to, const std::string &path);

// --- The command.

// Moves the homes to the policy's agent.state_dir, and finishes or takes back a move that was interrupted. `yes`: do not ask. Throws
// Failure(limit) while a session lives, Nothing if there is nothing to move.
void run_state_move(bool yes, std::ostream &out);

} // namespace pi_agent

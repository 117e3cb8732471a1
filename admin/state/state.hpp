// What is kept for a user, and for those who left: measured, handed out, removed, moved. `pi-agentctl state`.
#pragma once

#include "admin/host/host_things.hpp"

#include "runner/root/own/questions.hpp"

namespace pi_agent {

// --- pi-agentctl state: what is kept for each user, and how large it is.

// The state of one user. Throws NothingToDo without one.
UserState find_state(const AsRoot &root, const std::string &state_dir, const std::string &user);

// The command.
void run_state(const std::optional<std::string> &user, bool json, std::ostream &out);

// --- pi-agentctl state export: the agent's own records of its sessions, given to the user whose agent it is.

// Copies the content of `sessions` in the agent's directory into `directory`, which is made, or empty, and belongs to the user. A child
// with the agent's rights reads, one with the user's rights writes, and root handles neither's paths nor bytes. Throws NothingToDo if there
// is no state, or nothing in it.
void run_state_export(const std::string &user, const std::string &directory, std::ostream &out);

// --- pi-agentctl state prune and reset, and what `remove --state` takes away: each user's part by a child with the agent's rights.

// Removes the caches in the homes of users that have no session now, and temporary files that sessions left. `yes`: do not ask.
void run_state_prune(const std::optional<std::string> &user, bool yes, std::ostream &out);

// Empties a user's home and forgets what is known of it: the next start is like the first. Throws Failure(limit) while a session lives.
void run_state_reset(const std::string &user, bool yes, std::ostream &out);

// The name of the account that the user's agent has by the policy now, which may not exist yet. None where the user may not start pi.
std::optional<std::string> agent_of_user(const Policy &policy, const std::string &name);

// Gives homes that a reset left empty to the accounts that the policy has for their users now.
void hand_over_empty_homes(const AsRoot &root, const Policy &policy, Changes &changes);

// Removes all that is kept for one user, with its directory; `name` is the user's in paths. Throws NothingToDo without any, Failure(limit)
// while a session of theirs lives.
void remove_state_of(const AsRoot &root, const std::string &state_dir, const std::string &name);

// Removes a state directory with all that pi-agent made in it; what it did not make stays, and is a Failure(configuration).
void remove_all_state(const AsRoot &root, const std::string &state_dir);

// --- Whether somebody left. A directory service that does not answer must not look as if everybody had.

// How a host is asked for people; each is empty for those whom it does not know.
struct UserDatabase {
    std::function<std::optional<Account>(const std::string &name)> by_name;
    std::function<std::optional<Account>(Uid uid)> by_uid;
    std::function<std::optional<Gid>(const std::string &group)> group;
    MembersOf members;
    std::vector<std::string> services = {}; // besides files of this host, by the names of nsswitch.conf(5): each may not answer just now
};

class People {
public:
    // Borrows the policy. `gone`: who left this host by the administrator's word. Throws Failure(configuration) if the host does not know a
    // user or group that the policy names: then nobody can tell who left, and who only cannot be found just now.
    People(const Policy &policy, UserDatabase database, std::vector<std::string> gone = {});

    // "alice left the policy", "alice left this host"; empty for those who stay, and for those of whom nobody can tell. `name` as in paths
    // (short_name).
    [[nodiscard]] std::string why_left(const std::string &name) const;

    // Why it is not known that somebody left who seems to have; empty if it is. A directory service that is down, or that knows only whom
    // it has cached, answers as if it did not know them.
    [[nodiscard]] std::string doubt_about(const std::string &name) const;

private:
    [[nodiscard]] std::optional<Account> find(const std::string &name) const;

    const Policy &policy_;
    UserDatabase database_;
    std::vector<std::string> gone_;
    std::set<std::string> named_;   // by the policy, or as a member by the database of a group that the policy names
    bool has_unknown_ones_ = false; // among these members
};

// --- What is still here of them.
struct Left {
    enum class Kind { home, account };
    Kind kind = Kind::home;
    std::string user;    // whose agent's
    std::string name;    // of the user in paths, or of the account
    std::string account; // of the agent
    std::string path;    // of the home, for display
    std::string why;     // it is not needed any more
    std::string kept;    // why it must stay; empty for what `user prune` removes
    bool operator==(const Left &) const = default;
};

// Homes first. What has another owner, group or maker than pi-agent gave it stays, and whatever a living session may use.
// `gone` as above; throws Failure(usage) for one whom this host knows.
std::vector<Left> find_left(const AsRoot &root, const Policy &policy, const std::vector<std::string> &gone = {});

// "the home of alice's agent, /var/lib/pi-agent/users/alice", "the account pi-agent-alice".
std::string to_text(const Left &left);

// --- What this host knows of the place of its state: a file of root's beside the policies that were applied. Without the file, the state
// is at the default place.
struct StatePlace {
    std::string place = default_state_dir;
    std::string next = {};   // a move there has begun; the homes are there as soon as it has a directory `users`
    std::string former = {}; // the homes left this place, but not all of their files are removed from there
    [[nodiscard]] bool is_settled() const { return next.empty() && former.empty(); }
};
StatePlace read_state_place(const AsRoot &root);

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

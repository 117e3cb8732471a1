// Answers users about their own sessions, and looks at sessions and at what is kept.
#pragma once

#include "runner/root/session/session_directory.hpp"

namespace pi_agent {

// --- A user's question about their own sessions: the sudo rule and the runner of a start, and another first message.

// Whether a session of the user's own is among those that a question names, by whole ids.
bool is_asked_for(const std::string &id, const std::vector<std::string> &asked);

// Whether the wrapper's socket already holds a question. Looks at eight bytes, takes nothing out, and does not wait: whoever asks puts the
// question there before sudo starts, and every other caller is one who starts a session.
bool holds_question(FdRef wrapper);

// Reads the question, answers it, and returns the runner's exit status. Throws nothing: what fails is the answer, and what is denied is
// recorded too.
int answer_question(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

// --- What can be said about the sessions that live, and about what is kept for their users.

// In the order in which they started; those that are still being prepared come last. Only of `user` if one is given. Values of the record
// are harmless (common/record/record_event.hpp), names are plain.
std::vector<SessionView> look_at_sessions(const AsRoot &root, const std::optional<Uid> &user);

// What is kept for a user: found by descriptor, and measured with the rights of the agent that it belongs to.

// The state of one user, as it is on disk: the owner of the home decides which agent's it is, not the policy.
struct UserState {
    std::string user;
    std::string name; // of the user in paths
    std::string path; // STATE_DIR/users/USER
    Account agent;    // the owner of the home; "uid 999" where the user database has none of that number
    UniqueFd home;    // O_RDONLY directory
};

// In the order of their names; only of `user` if one is given. Leaves out what is not a user's state, or only just begun.
std::vector<UserState> find_states(const AsRoot &root, const std::string &state_dir, const std::optional<std::string> &user);

// How large each is, in the same order. Without a user, the last is what sessions left that are over.
std::vector<SizeOfState> measure_states(const AsRoot &root, const std::string &state_dir, const std::optional<std::string> &user);

// How many sessions of this user live, those that are being prepared included. Of a user whom the user database does not have: how many
// live of users like that, because one of them may be this one.
std::size_t count_live_sessions(const AsRoot &root, const std::string &user);

// Where the package managers of an agent's home keep what they can fetch again; relative to the home.
extern const std::vector<std::string> cache_places;

// Throws Failure when it cannot be found out in time. A file with several names counts once, other file systems not at all.
HomeSize measure_home(const AsRoot &root, const Account &agent, FdRef home);

} // namespace pi_agent

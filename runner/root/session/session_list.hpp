// Which sessions there are, whose they are, and who runs them.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/ids.hpp"
#include "common/host/identity.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// Whose session it is, and the process that runs it, or did. Nothing where that is not written down yet, or not any more.
std::optional<Uid> session_user(FdRef session);
std::optional<pid_t> session_runner(FdRef session);
// Whether that process is a runner, of this or of another session: its number may be anybody's by now.
bool is_runner(pid_t process);
bool has_living_runner(const std::string &session_id);

// Sessions of a user whose runners live, the caller's own included. Takes no lock that anybody waits for: each start makes its directory
// and then counts, so of those that start at once the last to come sees all the others.
std::size_t count_sessions(const AsRoot &root, Uid user);

// True when a session of `user` other than `id` is prepared, or runs, without settings of its own that are locked (make_file
// "settings.json"). Under the lock of the user's state, in which sessions are prepared.
bool has_unlocked_session(const AsRoot &root, Uid user, const std::string &id);

// Sessions whose runner is gone (their lock is free).
std::vector<std::string> find_orphans(const AsRoot &root);

// Sessions of all users whose runners live.
struct LiveSession {
    std::string id;
    Uid user;
};
std::vector<LiveSession> live_sessions(const AsRoot &root);

} // namespace pi_agent

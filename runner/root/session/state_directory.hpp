// The persistent state of one user: HOME of their agent, what only root knows about it, its locks, and which notices were told.
#pragma once

#include "common/base/request.hpp"
#include "common/base/text.hpp"
#include "common/host/identity.hpp"

namespace pi_agent {

// --- Waits for a lock that another process holds, with a deadline.

// Locks a file for this description alone (flock(2), LOCK_EX). False when somebody else holds it until the deadline. `waiting` is called
// between two tries. Throws SystemFailure, in which `what` names the file, when it cannot be locked.
bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting = {});

// --- File systems of another host: that host and the network decide what locks and owners of files mean there.

// "NFS", …; empty for a file system of this host. `type` as in statfs(2).
std::string network_file_system(unsigned long type);

// Throws Failure(configuration) where `directory` is on one; `path` names it, and `key` is the key of the policy that says so.
void require_own_file_system(FdRef directory, const std::string &path, const std::string &key);

// --- The state of one user.

// Root owns every component of these paths except the last one of `home`, so the agent cannot exchange them.
struct StateDirectory {
    std::string home_path; // <state_dir>/users/USER/home
    UniqueFd home;         // O_RDONLY directory
    UniqueFd staging;      // of the agent's account too, but no agent sees it: files that are being made
    UniqueFd meta;         // for root alone
    UniqueFd lock;         // held while state is touched; release by reset()
};

// Creates what is missing, checks owners and modes, and takes the user's lock. Throws Failure(configuration) when the home belongs to
// another account, Failure(limit) when another start of the same user holds the lock for more than five seconds.
// `wait` is called while it waits for that lock.
StateDirectory open_state_directory(const AsRoot &root, const std::string &state_dir, const std::string &user, const Account &agent,
                                    const std::function<void()> &wait);

// Opens `name` beneath a directory that only root can write, creating it first if need be. Changes the owner only of a directory that was
// just made, or was left half made.
UniqueFd ensure_state_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path);

// A file in `meta`; `name` is a constant of our code. None when it does not exist and `flags` create none.
UniqueFd open_meta_file(const StateDirectory &state, const char *name, int flags = O_RDWR | O_CREAT);
// Its content, at most `limit` bytes; none when there is no such file.
std::optional<std::string> read_meta_file(const StateDirectory &state, const char *name, std::size_t limit);
// The file has the old content or the new one, even if the host stops meanwhile.
void write_meta_file(const StateDirectory &state, const char *name, const std::string &content);
// Replaces `name` by `fresh`.
void replace_meta_file(const StateDirectory &state, const char *fresh, const char *name);

// --- Which pi-agent used a home last. Root's stamp, beside the home, decides; the agent has a copy in its home.

// None for a home that was never used. Throws Failure(configuration) when the stamp does not hold a version: nobody guesses which
// migrations a home has seen.
std::optional<Version> read_stamp(const StateDirectory &state);

void write_stamp(const StateDirectory &state, const Version &version);

// --- Sends messages to the wrapper. The user can stop the wrapper, and the wrapper need not read. So root waits once for a wrapper
// that does not read, and not again until that wrapper has read something.

class ToWrapper {
public:
    explicit ToWrapper(FdRef wrapper) noexcept : wrapper_(wrapper) {}

    // best_effort: a wrapper that is gone ends the session by itself, and one that does not read misses the message.
    void tell(const RunnerMessage &message) noexcept;
    void tell_all(const std::vector<std::string> &notices) noexcept;
    // Sends without waiting, whatever came before. False when the message did not get there.
    bool tell_at_once(const RunnerMessage &message) noexcept;

private:
    FdRef wrapper_;
    bool reads_ = true;
};

// --- Notices that would be the same at every start: sent once, or once for each place, and again when they change.

// Which of `notices` to send now: all of them, or nothing where the last start had the same ones about `about` (a file of the user's meta).
// A notice that was absent at a start and is back is sent again: somebody had fixed its cause. With `always`, all of them.
std::vector<std::string> untold(const StateDirectory &state, const char *about, const std::vector<std::string> &notices, bool always);

// The same, once for each `place`: all of them, or nothing where any earlier start sent exactly these about this place.
std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always);

} // namespace pi_agent

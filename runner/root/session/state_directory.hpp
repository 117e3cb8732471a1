// The persistent state of one user: HOME of their agent, what only root knows of it, and the locks and file systems that it needs.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"
#include "common/base/version.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace pi_agent {

// --- Waiting for a lock that another process holds, and not for ever.

// Locks a file for this description alone (flock(2), LOCK_EX). False when somebody else holds it until the deadline. `waiting` is called
// between two tries. Throws SystemFailure, in which `what` names the file, when it cannot be locked.
bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting = {});

// --- File systems that are another host's: locks there and the owners of files are whatever that host and the network make of them.

// "NFS", …; empty for what is of this host. `type` is statfs(2)'s.
std::string network_file_system(unsigned long type);

// Throws Failure(configuration) where `directory` lies on one; `path` names it, and `key` what of the policy says so.
void require_own_file_system(FdRef directory, const std::string &path, const std::string &key);

// --- The state of one user.

// Every component of these paths but the last of `home` belongs to root, so the agent cannot exchange them.
struct StateDirectory {
    std::string home_path; // <state_dir>/users/USER/home
    UniqueFd home;         // O_RDONLY directory
    UniqueFd staging;      // the agent's too, but shown to no agent: files that are being made
    UniqueFd meta;         // root's alone
    UniqueFd lock;         // held while state is touched; release by reset()
};

// Creates what is missing, checks owners and modes, and takes the user's lock. Throws Failure(configuration) when the home belongs to
// another account, Failure(limit) when another start of the same user holds the lock for more than five seconds.
// `wait` is called while it waits for that lock.
StateDirectory open_state_directory(const AsRoot &root, const std::string &state_dir, const std::string &user, const Account &agent,
                                    const std::function<void()> &wait);

// Opens `name` beneath a directory that only root can write, creating it first if need be. Ownership is given only to what was just made,
// or half made.
UniqueFd ensure_state_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path);

// A file in `meta`; `name` is a constant of our code. None when it does not exist and `flags` create none.
UniqueFd open_meta_file(const StateDirectory &state, const char *name, int flags = O_RDWR | O_CREAT);
// Its content, at most `limit` bytes; none when there is no such file.
std::optional<std::string> read_meta_file(const StateDirectory &state, const char *name, std::size_t limit);
// It has the old content or the new one, whatever ends the host meanwhile.
void write_meta_file(const StateDirectory &state, const char *name, const std::string &content);
// Replaces `name` by `fresh`.
void replace_meta_file(const StateDirectory &state, const char *fresh, const char *name);

// --- Which pi-agent used a home last. Root's stamp, beside the home, decides; the agent has a copy in it.

// None for a home that was never used. Throws Failure(configuration) when what is there is no version: it is not guessed which migrations a
// home has seen.
std::optional<Version> read_stamp(const StateDirectory &state);

void write_stamp(const StateDirectory &state, const Version &version);

// $XDG_STATE_HOME/.pi-agent-version, as the agent; restored when it is anything else. Left out where the agent has a symlink or a file
// instead of a directory above it.
void copy_version(const AsUser &agent, FdRef home, FdRef staging, const Version &version);

} // namespace pi_agent

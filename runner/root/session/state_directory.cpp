// Creates, checks and locks the state of one user.
#include "runner/root/session/state_directory.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/file_lock.hpp"

#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int lock_patience_seconds = 5;

bool is_empty(FdRef directory)
{
    auto stream = DirectoryStream::reopened(directory);
    if (!stream) throw_errno("listing a state directory");
    return stream.next() == nullptr && errno == 0;
}

// What a start left that ended between making a directory and giving it away. Nobody but root can have put anything there since.
bool is_half_made(FdRef directory, const struct stat &facts)
{
    return facts.st_uid == 0 && facts.st_gid == 0 && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0 && is_empty(directory);
}

UniqueFd take_lock(FdRef meta, const std::string &user, const std::function<void()> &wait)
{
    UniqueFd lock = open_or_throw("opening the state lock of " + user, meta, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!lock_until(lock, in_seconds(lock_patience_seconds), "the state of " + user, wait))
        throw Failure(ExitStatus::limit, "another start of the agent of " + user + " has been preparing for more than " +
                                             std::to_string(lock_patience_seconds) +
                                             " seconds; try again, or look for it with: pgrep -a pi-agent");
    return lock;
}

// Every level may be a mount of its own. Looked at before a lock, an owner or a mode is asked of it.
UniqueFd ensure_own_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path)
{
    const UniqueFd there = UniqueFd::adopt(openat(parent.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (there) require_own_file_system(there, path, "agent.state_dir");
    return ensure_state_directory(parent, name, mode, uid, gid, path);
}

} // namespace

UniqueFd ensure_state_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path)
{
    const bool made = mkdirat(parent.get(), name, 0700) == 0;
    if (!made && errno != EEXIST) throw_errno("creating " + path);
    UniqueFd directory = open_or_throw("opening " + path, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat facts = examine(directory, "examining " + path);
    if (made || is_half_made(directory, facts)) {
        if (fchown(directory.get(), uid, gid) != 0 || fchmod(directory.get(), mode) != 0) throw_errno("setting owner and mode of " + path);
        if (fstat(directory.get(), &facts) != 0) throw_errno("examining " + path);
    }
    if (facts.st_uid != uid || facts.st_gid != gid)
        throw Failure(ExitStatus::configuration,
                      path + " belongs to " + std::to_string(facts.st_uid) + ":" + std::to_string(facts.st_gid) + " but must belong to " +
                          std::to_string(uid) + ":" + std::to_string(gid) +
                          "; was the agent's account changed? move the directory away, or change its owner by hand");
    if ((facts.st_mode & 07777) != mode && fchmod(directory.get(), mode) != 0) throw_errno("setting the mode of " + path);
    return directory;
}

StateDirectory open_state_directory(const AsRoot & /*root*/, const std::string &state_dir, const std::string &user, const Account &agent,
                                    const std::function<void()> &wait)
{
    const UniqueFd top = open_trusted(state_dir, O_RDONLY | O_DIRECTORY, "state directory");
    require_own_file_system(top, state_dir, "agent.state_dir");
    const UniqueFd users = ensure_own_directory(top, "users", 0711, 0, 0, state_dir + "/users");
    const std::string user_path = state_dir + "/users/" + user;
    const UniqueFd own = ensure_own_directory(users, user.c_str(), 0711, 0, 0, user_path);
    StateDirectory state;
    state.meta = ensure_own_directory(own, "meta", 0700, 0, 0, user_path + "/meta");
    state.lock = take_lock(state.meta, user, wait);
    state.home_path = user_path + "/home";
    state.home = ensure_own_directory(own, "home", 0700, agent.uid.value(), agent.gid.value(), state.home_path);
    state.staging = ensure_own_directory(own, "staging", 0700, agent.uid.value(), agent.gid.value(), user_path + "/staging");
    fault_point("state-locked");
    return state;
}

UniqueFd open_meta_file(const StateDirectory &state, const char *name)
{
    UniqueFd file = open_or_throw(std::string("opening meta/") + name + " of " + state.home_path, state.meta, name,
                                  O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    return file;
}

std::optional<std::string> read_meta_file(const StateDirectory &state, const char *name, std::size_t limit)
{
    const UniqueFd file = UniqueFd::adopt(openat(state.meta.get(), name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file) throw_errno(std::string("opening meta/") + name + " of " + state.home_path);
    return read_whole(file, limit, std::string("meta/") + name + " of " + state.home_path);
}

void write_meta_file(const StateDirectory &state, const char *name, const std::string &content)
{
    const std::string fresh = std::string(name) + ".new";
    const UniqueFd file = open_meta_file(state, fresh.c_str());
    if (ftruncate(file.get(), 0) != 0) throw_errno("emptying meta/" + fresh);
    write_whole(file, content, "meta/" + fresh);
    if (fdatasync(file.get()) != 0) throw_errno("writing meta/" + fresh + " to disk");
    replace_meta_file(state, fresh.c_str(), name);
}

void replace_meta_file(const StateDirectory &state, const char *fresh, const char *name)
{
    if (renameat(state.meta.get(), fresh, state.meta.get(), name) != 0) throw_errno(std::string("replacing meta/") + name);
}

} // namespace pi_agent

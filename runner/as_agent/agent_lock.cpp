// Taking and releasing the agent's own lock.
#include "runner/as_agent/agent_lock.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <ctime>
#include <thread>

namespace pi_agent {

namespace {

constexpr int beyond_stale_seconds = 2;

int stale_seconds(const std::string &name) noexcept
{
    return name == "auth.json" ? 30 : 10;
}

// A time in the future does not count as a sign of life either: a lock with one could never be called stale.
bool is_fresh(FdRef directory, const std::string &lock_name, int seconds)
{
    struct stat facts {};
    if (fstatat(directory.get(), lock_name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        require_gone("looking at " + lock_name + " in the agent's home");
        return false;
    }
    const std::time_t age = std::time(nullptr) - facts.st_mtim.tv_sec;
    return age <= seconds && age >= -seconds;
}

// Removes the lock without what is in it: the agent decides how much and how deep that is.
void take_away(FdRef directory, const std::string &lock_name)
{
    if (unlinkat(directory.get(), lock_name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return;
    if (errno == ENOTDIR && (unlinkat(directory.get(), lock_name.c_str(), 0) == 0 || errno == ENOENT)) return;
    set_aside(directory, lock_name);
}

} // namespace

bool is_locked_by_agent(FdRef directory, const std::string &name)
{
    return is_fresh(directory, name + ".lock", stale_seconds(name));
}

AgentLock::AgentLock(FdRef directory, const std::string &name, FdRef channel) : directory_(directory), lock_name_(name + ".lock")
{
    const int seconds = stale_seconds(name);
    const Deadline deadline = in_seconds(seconds + beyond_stale_seconds);
    while (mkdirat(directory.get(), lock_name_.c_str(), 0700) != 0) {
        if (errno != EEXIST) throw_errno("locking " + name + " in the agent's home");
        if (Clock::now() >= deadline)
            throw Failure(FailureKind::busy, "another session of yours keeps " + name + " locked (" + lock_name_ +
                                                 " in its config directory); end that session, then try again");
        if (!is_fresh(directory, lock_name_, seconds)) {
            take_away(directory, lock_name_);
            continue;
        }
        send_progress(channel);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

AgentLock::~AgentLock()
{
    unlinkat(directory_.get(), lock_name_.c_str(), AT_REMOVEDIR); // best_effort: what is left is stale in seconds
}

} // namespace pi_agent

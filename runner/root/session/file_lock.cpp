// Trying for a lock again and again.
#include "runner/root/session/file_lock.hpp"

#include "common/base/error.hpp"

#include <cerrno>
#include <chrono>
#include <sys/file.h>
#include <thread>

namespace pi_agent {

bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting)
{
    while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) throw_errno("locking " + what);
        if (Clock::now() >= deadline) return false;
        if (waiting) waiting();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

} // namespace pi_agent

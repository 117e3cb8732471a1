// pidfd_open(2) and pidfd_send_signal(2), for which older C libraries have no functions.
#include "common/base/process_handle.hpp"

#include "common/base/error.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

UniqueFd open_process(pid_t pid)
{
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(FdRef process)
{
    pollfd wait{process.get(), POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
}

void signal_process(FdRef process, int number, const char *what)
{
    if (syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) != 0 && errno != ESRCH) throw_errno(what);
}

} // namespace pi_agent

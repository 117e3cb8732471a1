// flock(2) on files of root's in /run.
#include "admin/host/host_lock.hpp"

#include "common/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/file.h>

namespace pi_agent {

namespace {

UniqueFd take(const std::string &path, const std::string &held)
{
    auto lock =
        UniqueFd::adopt(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)); // NOLINT(cppcoreguidelines-pro-type-vararg)
    if (!lock) throw_errno("cannot open " + path);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno == EWOULDBLOCK) throw Failure(ExitStatus::limit, held);
    throw_errno("cannot lock " + path);
}

} // namespace

UniqueFd take_apply_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl.lock", "another 'pi-agentctl apply' is running; wait for it");
}

UniqueFd take_edit_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-edit.lock", "somebody is editing the policy: another 'pi-agentctl edit' is running; wait for it");
}

} // namespace pi_agent

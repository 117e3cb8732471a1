// Keyrings have no wrapper in the C library.
#include "common/base/keyring.hpp"

#include <cerrno>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

int leave_session_keyring() noexcept
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0 || errno == ENOSYS) return 0;
    if (errno != EPERM) return errno;
    // A question that the kernel itself never answers so.
    const bool filtered = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 && errno == EPERM;
    return filtered ? 0 : EPERM;
}

} // namespace pi_agent

// What bubblewrap needs of a host.
#include "runner/bwrap_preflight.hpp"

#include "common/build_settings.hpp"
#include "common/error.hpp"
#include "runner/method_program.hpp"

#include <array>
#include <linux/capability.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// Without it no file system can be mounted, by us or by bwrap.
void require_mount_capability()
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) throw_errno("reading the own capabilities");
    if ((data[0].effective & (1U << static_cast<unsigned>(CAP_SYS_ADMIN))) != 0) return;
    throw Failure(ExitStatus::unavailable,
                  "root of this container may not mount (it has no CAP_SYS_ADMIN), and sandbox.method bwrap builds the agent's view out of "
                  "mounts; start the container with that capability, or choose another method");
}

} // namespace

void require_bwrap(const AsRoot & /*root*/)
{
    require_method_program("bwrap", build::bwrap_path, "bubblewrap");
    require_method_program("bwrap", build::setpriv_path, "util-linux");
    require_mount_capability();
}

} // namespace pi_agent

// A device of the kernel's under a name of its own, where this place lets root make one.
#pragma once

#include "support/temporary_directory.hpp"

#include "common/base/channel.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace pi_agent::test {

// Closed where the place has no such device. Below /dev, the one place whose file system lets devices be opened in a build root too.
inline UniqueFd open_device(mode_t kind, unsigned device_major, unsigned device_minor, int flags)
{
    const TemporaryDirectory directory("/dev");
    const std::string path = directory / "device";
    if (::mknod(path.c_str(), kind | 0600, makedev(device_major, device_minor)) != 0) return UniqueFd();
    return UniqueFd::adopt(::open(path.c_str(), flags | O_CLOEXEC));
}

} // namespace pi_agent::test

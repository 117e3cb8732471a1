// Which descriptors a caller may hand to the agent.
#include "runner/stdio_rules.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

constexpr std::array names = {"standard input", "standard output", "standard error"};

bool is_harmless_device(const struct statx &facts) noexcept
{
    constexpr unsigned memory_major = 1; // null 3, zero 5, full 7: Linux, Documentation/admin-guide/devices.txt
    return facts.stx_rdev_major == memory_major && (facts.stx_rdev_minor == 3 || facts.stx_rdev_minor == 5 || facts.stx_rdev_minor == 7);
}

const char *what_is_wrong(FdRef fd)
{
    const int flags = fcntl(fd.get(), F_GETFL);
    if (flags < 0) throw_errno("examining a descriptor of the request");
    if ((flags & O_PATH) != 0) return "a path descriptor";
    struct statx facts {};
    // DONT_SYNC: a FUSE file system of the caller is not asked, so it cannot keep root waiting.
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &facts) != 0)
        throw_errno("examining a descriptor of the request");
    switch (facts.stx_mode & S_IFMT) {
    case S_IFIFO:
    case S_IFREG:
    case S_IFSOCK:
        return nullptr;
    case S_IFCHR:
        return is_harmless_device(facts) ? nullptr : "a terminal or another device";
    case S_IFDIR:
        return "a directory";
    case S_IFBLK:
        return "a block device";
    default:
        return "something unknown";
    }
}

} // namespace

void check_stdio(const std::array<UniqueFd, 3> &stdio, const OnTerminal &on_terminal)
{
    if (!defence_is_on("stdio-rules")) return;
    for (std::size_t index = 0; index < stdio.size(); ++index) {
        if (on_terminal[index]) continue;
        if (const char *problem = what_is_wrong(stdio[index]))
            throw Failure(ExitStatus::denied,
                          std::string("denied: ") + names[index] + " is " + problem +
                              "; the agent gets only pipes, regular files, sockets, /dev/null, /dev/zero and /dev/full");
    }
}

} // namespace pi_agent

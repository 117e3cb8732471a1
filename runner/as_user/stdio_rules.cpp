// Which descriptors a caller may hand to the agent.
#include "runner/as_user/stdio_rules.hpp"

#include "common/base/error.hpp"
#include "common/seams/defence.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

void let_pipes_be_opened(const std::array<UniqueFd, 3> &stdio)
{
    std::array<int, 2> own{};
    if (pipe2(own.data(), O_CLOEXEC) != 0) throw_errno("making a pipe");
    const UniqueFd reading = UniqueFd::adopt(own[0]);
    const UniqueFd writing = UniqueFd::adopt(own[1]);
    struct stat anonymous {};
    if (fstat(reading.get(), &anonymous) != 0) throw_errno("examining a pipe");
    for (std::size_t index = 0; index < stdio.size(); ++index) {
        struct statx facts {};
        if (!stdio[index] || statx(stdio[index].get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE, &facts) != 0)
            continue;
        // All anonymous pipes lie on one file system of the kernel's; one with a name belongs to whoever made it.
        if (!S_ISFIFO(facts.stx_mode) || makedev(facts.stx_dev_major, facts.stx_dev_minor) != anonymous.st_dev) continue;
        const mode_t way = index == 0 ? S_IROTH : S_IWOTH;
        fchmod(stdio[index].get(), (facts.stx_mode & 0777U) | way); // best_effort: another's pipe stays as it is
    }
}

} // namespace pi_agent

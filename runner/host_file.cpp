// Opening what a user's config names.
#include "runner/host_file.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "runner/agent_lock.hpp"

#include <chrono>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

namespace pi_agent {

namespace {

// Opening a FIFO would wait and opening a device may act, so the type is looked at first, through a descriptor that does neither.
UniqueFd reopen(FdRef place)
{
    return UniqueFd::adopt(open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// The first component of a path that is a link to nothing, or "". Such a link is a mistake; nothing at all is a new user. Keeps no errno
// but ENOENT, with which the path was found missing.
std::string find_dangling_link(const std::string &path)
{
    std::string found;
    for (std::size_t end = path.find('/', 1); found.empty(); end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        const bool leads_nowhere = access(part.c_str(), F_OK) != 0 && errno == ENOENT;
        if (leads_nowhere && faccessat(AT_FDCWD, part.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) found = part;
        if (leads_nowhere || end == std::string::npos) break;
    }
    errno = ENOENT;
    return found;
}

} // namespace

HostFacts facts_of(const struct stat &facts) noexcept
{
    return HostFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_mtim), nanoseconds_of(facts.st_ctim),
                     facts.st_mode & 0777U};
}

bool is_kernels(FdRef place)
{
    struct statfs facts {};
    if (!defence_is_on("kernels-files")) return false;
    return fstatfs(place.get(), &facts) != 0 || facts.f_type == PROC_SUPER_MAGIC || facts.f_type == SYSFS_MAGIC;
}

HostFile open_host_file(FdRef directory, const std::string &path)
{
    const UniqueFd place = UniqueFd::adopt(openat(directory.get(), path.c_str(), O_PATH | O_CLOEXEC));
    if (!place) return {{}, {}, SystemFailure(errno, "opening").what()};
    struct stat facts {};
    if (fstat(place.get(), &facts) != 0) return {{}, {}, SystemFailure(errno, "examining").what()};
    if (!S_ISREG(facts.st_mode)) return {{}, {}, "no longer a file"};
    if (is_kernels(place)) return {{}, {}, "a file of the kernel's"};
    HostFile file{reopen(place), {}, {}};
    if (!file.fd) return {{}, {}, SystemFailure(errno, "opening").what()};
    if (fstat(file.fd.get(), &facts) != 0) return {{}, {}, SystemFailure(errno, "examining").what()};
    file.facts = facts_of(facts);
    return file;
}

UniqueFd open_source_directory(const std::string &path, const std::string &what)
{
    UniqueFd top = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
    if (top) return top;
    const int problem = errno;
    const std::string dangling = problem == ENOENT ? find_dangling_link(path) : "";
    if (!dangling.empty())
        throw Failure(ExitStatus::configuration,
                      what + " cannot be used: " + escape_for_display(path) + " is dangling: " + escape_for_display(dangling) +
                          " is a link to what is not there (a file system that is not mounted?); mount it, or correct the link");
    if (problem != ENOENT)
        throw Failure(ExitStatus::configuration,
                      what + " cannot be used: " + std::string(SystemFailure(problem, "opening " + escape_for_display(path)).what()) +
                          "; make it a directory that you can read, or ask the administrator to set users.*.config");
    return UniqueFd();
}

UniqueFd open_document(FdRef directory, const std::string &name, const std::string &place)
{
    if (faccessat(directory.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return UniqueFd();
    HostFile file = open_host_file(directory, name);
    if (!file.fd)
        throw Failure(ExitStatus::configuration, escape_for_display(place) + " is not a file that you can read (" + file.problem +
                                                     "); correct it, nothing was changed");
    return std::move(file.fd);
}

void wait_for_lock(FdRef directory, const std::string &name, int patience_milliseconds)
{
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_milliseconds);
    while (is_locked_by_agent(directory, name) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

} // namespace pi_agent

// Opening what a user's config names.
#include "runner/as_user/named_files.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/agent_lock.hpp"

#include <chrono>
#include <fcntl.h>
#include <functional>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

namespace pi_agent {

namespace {

// Opening a FIFO would wait and opening a device may act, so the type is looked at first, through a descriptor that does neither.
UniqueFd reopen(FdRef place, int flags = 0)
{
    return open_at(FdRef(AT_FDCWD), "/proc/self/fd/" + std::to_string(place.get()), O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
}

// The first component of a path that is a symlink to nothing, or "". Such a symlink is a mistake; a missing path just means a new user.
// Preserves only the errno ENOENT, with which the path was found missing.
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

// `place` is open on what was found (O_PATH).
HostFile open_found(FdRef place, bool by_agents)
{
    const auto without = [&](const std::string &problem) { return HostFile{{}, {}, problem, by_agents}; };
    struct stat facts {};
    if (fstat(place.get(), &facts) != 0) return without(SystemFailure(errno, "examining").what());
    if (!S_ISREG(facts.st_mode)) return without(no_regular_file);
    if (is_kernels(place)) return without("the kernel makes that file");
    HostFile file{reopen(place), {}, {}, by_agents};
    if (!file.fd) return without(SystemFailure(errno, "opening").what());
    if (fstat(file.fd.get(), &facts) != 0) return without(SystemFailure(errno, "examining").what());
    file.facts = facts_of(facts);
    return file;
}

HostFile open_followed(const std::function<UserPlacePtr()> &follow)
{
    try {
        return open_host_file(*follow());
    } catch (const NotFollowed &refusal) {
        return {{}, {}, refusal.what(), true};
    } catch (const SystemFailure &failure) {
        return {{}, {}, SystemFailure(failure.error_number(), "opening").what(), false};
    }
}

// A file directly in the directory, where agents do not write: one call finds it. None for a symlink, a mount point, or a deeper path:
// agents may write in a directory on the way, whatever name leads to it.
UniqueFd open_without_links(const UserPlace &from, const std::string &name)
{
    if (from.written_by != nullptr || name.find('/') != std::string::npos) return UniqueFd();
    UniqueFd fd =
        open_resolved(from.fd, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
    struct stat facts {};
    if (fd && (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode))) fd.reset();
    return fd;
}

} // namespace

bool is_kernels(FdRef place)
{
    struct statfs facts {};
    if (!defence_is_on("kernels-files")) return false;
    return fstatfs(place.get(), &facts) != 0 || facts.f_type == PROC_SUPER_MAGIC || facts.f_type == SYSFS_MAGIC;
}

HostFile open_host_file(const UserPlace &place)
{
    return open_found(place.fd, place.written_by != nullptr);
}

HostFile open_host_file(const UserPaths &paths, const UserPlacePtr &from, const std::string &path)
{
    if (const UniqueFd plain = open_without_links(*from, path)) return open_found(plain, false);
    return open_followed([&] { return paths.follow(from, path); });
}

HostFile open_host_file(const UserPaths &paths, const std::string &path)
{
    return open_followed([&] { return paths.follow(path); });
}

UserPlacePtr open_source_directory(const UserPaths &paths, const std::string &path, const std::string &what, std::string &left_out)
{
    int problem = 0;
    try {
        UserPlacePtr top = paths.follow(path);
        if (open_to_list(*top)) return top;
        problem = errno;
        if (top->written_by != nullptr) throw NotFollowed(SystemFailure(problem, "opening " + escape_for_display(top->path)).what(), false);
    } catch (const NotFollowed &refusal) {
        left_out = what + " " + escape_for_display(path) + " is left out: " + refusal.what();
        return nullptr;
    } catch (const SystemFailure &failure) {
        problem = failure.error_number();
    }
    const std::string dangling = problem == ENOENT ? find_dangling_link(path) : "";
    if (!dangling.empty())
        throw Failure(FailureKind::user_configuration,
                      what + " cannot be used: " + escape_for_display(path) + " does not exist: " + escape_for_display(dangling) +
                          " is a symlink to nothing (is a file system not mounted?); mount it, or correct the link");
    if (problem != ENOENT)
        throw Failure(FailureKind::user_configuration,
                      what + " cannot be used: " + std::string(SystemFailure(problem, "opening " + escape_for_display(path)).what()) +
                          "; make it a directory that you can read, or ask the administrator to set users.*.config");
    return nullptr;
}

UniqueFd open_to_list(const UserPlace &directory)
{
    return reopen(directory.fd, O_DIRECTORY);
}

HostFile open_document(const UserPaths &paths, const UserPlacePtr &directory, const std::string &name, const std::string &place,
                       std::string &left_out)
{
    if (faccessat(directory->fd.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return {};
    HostFile file = open_host_file(paths, directory, name);
    if (!file.fd && file.by_agents) {
        left_out = escape_for_display(place) + " is left out: " + file.problem;
        return file;
    }
    if (!file.fd)
        throw Failure(FailureKind::user_configuration, escape_for_display(place) + " is not a file that you can read (" + file.problem +
                                                           "); correct it; nothing was changed");
    return file;
}

void wait_for_lock(FdRef directory, const std::string &name, int patience_milliseconds)
{
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_milliseconds);
    while (is_locked_by_agent(directory, name) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

} // namespace pi_agent

// File operations that never leave the directory they begin in.
#include "common/host/beneath.hpp"

#include "common/base/absence.hpp"
#include "common/base/directory_stream.hpp"
#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/random_hex.hpp"
#include "common/seams/defence.hpp"

#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <linux/openat2.h>
#include <memory>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

UniqueFd make_directory(FdRef parent, const std::string &name)
{
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("creating " + escape_for_display(name));
        UniqueFd directory = try_take_directory(parent, name);
        if (directory) return directory;
        // A link or a file in a directory's place is the agent's own doing. A file is kept beside it; what else it is goes.
        if (errno != ENOTDIR && errno != ELOOP && errno != ENOENT) throw_errno("opening " + escape_for_display(name));
        struct stat facts {};
        if (fstatat(parent.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
            require_gone("examining " + escape_for_display(name));
        else if (S_ISREG(facts.st_mode))
            set_aside(parent, name);
        else if (unlinkat(parent.get(), name.c_str(), 0) != 0 && errno != ENOENT)
            throw_errno("replacing " + escape_for_display(name));
    }
    throw Failure(ExitStatus::system_failure,
                  escape_for_display(name) +
                      " in the agent's home changes while it is being written; end the agent's other sessions and try again");
}

} // namespace

bool find_name(FdRef directory, const std::function<bool(const std::string &name)> &satisfies)
{
    auto stream = DirectoryStream::reopened(directory);
    if (!stream) throw_errno("listing a directory");
    while (const dirent *entry = stream.next())
        if (satisfies(entry->d_name)) return true;
    if (errno != 0) throw_errno("listing a directory");
    return false;
}

std::vector<std::string> names_in(FdRef directory)
{
    std::vector<std::string> names;
    find_name(directory, [&](const std::string &name) {
        names.push_back(name);
        return false;
    });
    return names;
}

std::pair<std::string, std::string> split_last(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {"", path};
    return {path.substr(0, slash), path.substr(slash + 1)};
}

UniqueFd find_beneath(FdRef top, const std::string &path, int flags) noexcept
{
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    if (!defence_is_on("beneath")) {
        how.resolve = 0;
        how.flags &= ~static_cast<std::uint64_t>(O_NOFOLLOW);
    }
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_openat2, top.get(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
}

UniqueFd look_beneath(FdRef top, const std::string &path, int flags)
{
    UniqueFd fd = find_beneath(top, path, flags);
    if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) throw_errno("looking at " + escape_for_display(path));
    return fd;
}

UniqueFd open_beneath(FdRef top, const std::string &path, int flags)
{
    UniqueFd fd = find_beneath(top, path, flags);
    if (!fd) throw_errno("opening " + escape_for_display(path));
    return fd;
}

UniqueFd ensure_directory_beneath(FdRef top, const std::string &path)
{
    UniqueFd current = open_beneath(top, "", O_RDONLY | O_DIRECTORY);
    std::size_t start = 0;
    while (start < path.size()) {
        const std::size_t slash = std::min(path.find('/', start), path.size());
        current = make_directory(current, path.substr(start, slash - start));
        start = slash + 1;
    }
    return current;
}

UniqueFd try_take_directory(FdRef parent, const std::string &name)
{
    UniqueFd directory = find_beneath(parent, name, O_RDONLY | O_DIRECTORY);
    if (!directory && errno == EACCES) {
        if (defence_is_on("removal-rights") && fchmodat(parent.get(), name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0)
            directory = find_beneath(parent, name, O_RDONLY | O_DIRECTORY);
        else
            errno = EACCES;
    }
    if (!directory) return directory;
    struct stat facts {};
    if (fstat(directory.get(), &facts) != 0) throw_errno("examining " + escape_for_display(name));
    if ((facts.st_mode & 0700U) != 0700U) fchmod(directory.get(), 0700); // best_effort: what is missing shows when it is used
    return directory;
}

UniqueFd find_own_directory_beneath(FdRef top, const std::string &path)
{
    UniqueFd current = open_beneath(top, "", O_RDONLY | O_DIRECTORY);
    for (std::size_t start = 0; current && start < path.size();) {
        const std::size_t slash = std::min(path.find('/', start), path.size());
        current = try_take_directory(current, path.substr(start, slash - start));
        start = slash + 1;
    }
    return current;
}

std::string set_aside(FdRef directory, const std::string &name)
{
    std::string kept = name.substr(0, 200) + ".kept-" + random_hex(4);
    if (renameat2(directory.get(), name.c_str(), directory.get(), kept.c_str(), RENAME_NOREPLACE) != 0 && errno != ENOENT)
        throw_errno("setting " + escape_for_display(name) + " aside");
    return kept;
}

} // namespace pi_agent

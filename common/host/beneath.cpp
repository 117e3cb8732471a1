// Opens what lies below a directory, step by step, so that no link leads anywhere else.
#include "common/host/beneath.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <linux/openat2.h>

#include <climits>
#include <cstdio>
#include <deque>

namespace pi_agent {

namespace {

UniqueFd make_directory(FdRef parent, const std::string &name)
{
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("creating " + escape_for_display(name));
        UniqueFd directory = try_take_directory(parent, name);
        if (directory) return directory;
        // A link or a file instead of a directory is the agent's own doing. It keeps a file beside the directory, and removes anything
        // else.
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
                  escape_for_display(name) + " in the agent's home changed while it was written; end your other sessions and try again");
}

PathStep take_step(int directory, const std::string &name, std::string path)
{
    PathStep step{std::move(path), open_step(directory, name)};
    if (!step.fd) throw_errno("cannot open " + escape_for_display(step.path));
    if (::fstat(step.fd.get(), &step.status) != 0) throw_errno("cannot examine " + escape_for_display(step.path));
    return step;
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
    if (!defence_is_on("beneath")) return open_resolved(top, path, flags & ~O_NOFOLLOW, 0);
    return open_resolved(top, path, flags | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
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
    for (const auto name : split(path, '/'))
        current = make_directory(current, std::string(name));
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
    const struct stat facts = examine(directory, "examining " + escape_for_display(name));
    if ((facts.st_mode & 0700U) != 0700U) fchmod(directory.get(), 0700); // best_effort: what is missing shows when it is used
    return directory;
}

UniqueFd find_own_directory_beneath(FdRef top, const std::string &path)
{
    UniqueFd current = open_beneath(top, "", O_RDONLY | O_DIRECTORY);
    for (const auto name : split(path, '/'))
        if (current) current = try_take_directory(current, std::string(name));
    return current;
}

std::string set_aside(FdRef directory, const std::string &name)
{
    std::string kept = name.substr(0, 200) + ".kept-" + random_hex(4);
    if (renameat2(directory.get(), name.c_str(), directory.get(), kept.c_str(), RENAME_NOREPLACE) != 0 && errno != ENOENT)
        throw_errno("setting " + escape_for_display(name) + " aside");
    return kept;
}

std::string kernel_path(FdRef fd)
{
    std::string path = read_link(FdRef(AT_FDCWD), "/proc/self/fd/" + std::to_string(fd.get()));
    return path.size() >= PATH_MAX || !path.starts_with('/') ? "" : path;
}

std::string path_of_directory(FdRef fd)
{
    std::string path = kernel_path(fd);
    if (path.empty())
        throw Failure(FailureKind::directory, "denied: the path of the working directory is longer than 4,096 bytes, or does not exist on "
                                              "this host; cd to a directory higher up");
    return path;
}

UniqueFd open_step(int directory, const std::string &name) noexcept
{
    // O_DIRECTORY first: O_PATH alone would open an automount point without mounting what belongs there.
    constexpr int flags = O_PATH | O_NOFOLLOW;
    UniqueFd fd = open_at(FdRef(directory), name, flags | O_DIRECTORY);
    if (!fd && errno == ENOTDIR) fd = open_at(FdRef(directory), name, flags);
    return fd;
}

std::string path_of_step(const std::string &directory, const std::string &name)
{
    if (name == "..") return parent_of(directory);
    return directory == "/" ? "/" + name : directory + "/" + name;
}

std::string link_target(FdRef fd, const std::string &path)
{
    errno = ENAMETOOLONG; // of one without a target, which the kernel does not call a failure
    std::string target = read_link(fd, "");
    if (target.empty()) throw_errno("cannot read the symlink " + escape_for_display(path));
    if (target.size() >= PATH_MAX) throw SystemFailure(ENAMETOOLONG, "cannot read the symlink " + escape_for_display(path));
    return target;
}

PathStep walk_path(const std::string &path, const StepJudge &judge)
{
    if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos) {
        throw SystemFailure(EINVAL, "cannot open " + escape_for_display(path) + " (not an absolute path)");
    }
    auto current = take_step(AT_FDCWD, "/", "/");
    judge(current, current);
    const auto names = path_components(path);
    std::deque<std::string> pending(names.begin(), names.end());
    int links = 0;
    while (!pending.empty()) {
        const auto name = std::move(pending.front());
        pending.pop_front();
        auto entry = take_step(current.fd.get(), name, path_of_step(current.path, name));
        judge(current, entry);
        if (!S_ISLNK(entry.status.st_mode)) {
            current = std::move(entry);
            continue;
        }
        if (++links > most_links) throw SystemFailure(ELOOP, "cannot open " + escape_for_display(path));
        const auto target = link_target(entry.fd, entry.path);
        const auto parts = path_components(target);
        pending.insert(pending.begin(), parts.begin(), parts.end());
        if (target.front() == '/') current = take_step(AT_FDCWD, "/", "/");
    }
    return current;
}

} // namespace pi_agent

// Placeholders in a user's project. One that another session still uses stays, and the last session removes it: a mount point among the
// host's mounts cannot be removed, and for the others it is recorded who uses them (runner/root/session/scratch.cpp).
#include "runner/as_user/protected_paths.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <sys/statvfs.h>

namespace pi_agent {

namespace {

// The sticky bit means nothing in an empty directory, and tells ours from the user's.
constexpr mode_t directory_mode = 01755;

std::string_view text_of(Standin standin)
{
    return standin == Standin::commondir ? placeholder_commondir : placeholder_comment;
}

// Nobody sees it half written: a commondir without its text would stop git. True when it exists afterwards, whoever made it.
bool make_file(FdRef parent, const std::string &name, std::string_view text)
{
    UniqueFd file = open_at(parent, ".", O_TMPFILE | O_WRONLY, 0644);
    const bool named = !file && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT);
    if (named) file = open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    if (!file) return named && errno == EEXIST;
    if (fchmod(file.get(), 0644) != 0) return false;
    write_whole(file, text, "a placeholder");
    if (named) return true;
    return linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(file.get())).c_str(), parent.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0 ||
           errno == EEXIST;
}

bool make_shown_directory(FdRef parent, const std::string &name)
{
    if (mkdirat(parent.get(), name.c_str(), 0755) != 0) return errno == EEXIST;
    const UniqueFd directory = find_beneath(parent, name, O_RDONLY | O_DIRECTORY);
    return directory && fchmod(directory.get(), directory_mode) == 0;
}

std::optional<Standin> kind_of(FdRef fd)
{
    struct stat facts {};
    if (fstat(fd.get(), &facts) != 0) return std::nullopt;
    if (S_ISDIR(facts.st_mode)) return (facts.st_mode & 07777U) == directory_mode ? std::optional(Standin::directory) : std::nullopt;
    if (!S_ISREG(facts.st_mode)) return std::nullopt;
    for (const Standin standin : {Standin::comment, Standin::commondir}) {
        const std::string_view text = text_of(standin);
        if (facts.st_size == static_cast<off_t>(text.size()) && read_whole(fd, text.size(), "a placeholder") == text) return standin;
    }
    return std::nullopt;
}

UniqueFd open_parent(FdRef top, const std::string &path)
{
    return find_beneath(top, split_last(path).first, O_RDONLY | O_DIRECTORY);
}

// The agent has the rights of the user, who owns it.
bool can_be_opened_by_owner(FdRef top, const std::string &path)
{
    const UniqueFd directory = find_beneath(top, path, O_PATH | O_DIRECTORY);
    struct stat facts {};
    struct statvfs system {};
    return directory && fstat(directory.get(), &facts) == 0 && facts.st_uid == geteuid() && fstatvfs(directory.get(), &system) == 0 &&
           (system.f_flag & ST_RDONLY) == 0;
}

UniqueFd open_placeholder(FdRef top, const std::string &path)
{
    return find_beneath(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

} // namespace

bool make_placeholder(FdRef top, const std::string &path, Standin standin)
{
    const UniqueFd parent = open_parent(top, path);
    const std::string name = split_last(path).second;
    if (parent && has_name(parent, name, "looking for " + escape_for_display(path))) return true;
    const bool made =
        parent && (standin == Standin::directory ? make_shown_directory(parent, name) : make_file(parent, name, text_of(standin)));
    if (made) return true;
    if (errno != EACCES && errno != EPERM && errno != EROFS) throw_errno("making a placeholder for " + escape_for_display(path));
    if (can_be_opened_by_owner(top, split_last(path).first) && defence_is_on("protect-unreadable"))
        throw Failure(FailureKind::protection,
                      escape_for_display(split_last(path).first) +
                          " in the project is yours, but you cannot write to it; the agent could change that and create " +
                          escape_for_display(name) +
                          " there, which the policy protects (projects.protect); make the directory writable for you");
    return false;
}

std::optional<Standin> find_placeholder(FdRef top, const std::string &path)
{
    const UniqueFd fd = open_placeholder(top, path);
    return fd ? kind_of(fd) : std::nullopt;
}

void remove_placeholder(FdRef top, const std::string &path)
{
    const UniqueFd parent = open_parent(top, path);
    const UniqueFd fd = open_placeholder(top, path);
    const auto kind = parent && fd ? kind_of(fd) : std::nullopt;
    if (!kind) return;
    const std::string name = split_last(path).second;
    struct stat opened {};
    struct stat named {};
    if (fstat(fd.get(), &opened) != 0 || fstatat(parent.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (!is_same_file(opened, named)) return;
    if (unlinkat(parent.get(), name.c_str(), *kind == Standin::directory ? AT_REMOVEDIR : 0) == 0) return;
    // Somebody uses it as a directory: then it belongs to them.
    if (errno == ENOTEMPTY || errno == EEXIST) fchmod(fd.get(), opened.st_mode & 0777U); // best_effort
}

} // namespace pi_agent

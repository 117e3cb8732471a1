// Replacing files that have several names by copies that have one: by descriptor, beneath the project, following no link.
#include "runner/as_user/protected_paths.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <cstdio>
#include <sys/statvfs.h>
#include <sys/xattr.h>

namespace pi_agent {

namespace {

constexpr std::size_t copied_size_limit = 16UL << 20U; // bytes of one file: it is read as a whole
constexpr std::size_t attributes_limit = 64UL * 1024;  // of a list and of a value (xattr(7))
constexpr int copying_attempts = 3;                    // of a file that is written meanwhile
constexpr std::size_t paths_named = 3;
constexpr mode_t kept_mode = 01777; // without setuid and setgid: nobody gave a copy the right to act as its owner

bool is_unchanged(const struct stat &before, const struct stat &now)
{
    return is_same_file(before, now) && before.st_mode == now.st_mode && before.st_uid == now.st_uid && before.st_gid == now.st_gid &&
           before.st_size == now.st_size && before.st_mtim.tv_sec == now.st_mtim.tv_sec && before.st_mtim.tv_nsec == now.st_mtim.tv_nsec &&
           before.st_ctim.tv_sec == now.st_ctim.tv_sec && before.st_ctim.tv_nsec == now.st_ctim.tv_nsec;
}

// Inside, the agent has the rights of the user: what the user owns it can make writable.
bool may_change(FdRef parent, const std::string &name, const struct stat &facts)
{
    struct statvfs system {};
    if (fstatvfs(parent.get(), &system) != 0) throw_errno("examining the file system of " + escape_for_display(name));
    if ((system.f_flag & ST_RDONLY) != 0) return false;
    if (facts.st_uid == geteuid() || faccessat(parent.get(), name.c_str(), W_OK, AT_SYMLINK_NOFOLLOW) == 0) return true;
    if (errno != EACCES && errno != EPERM && errno != EROFS && errno != ENOENT)
        throw_errno("asking who may change " + escape_for_display(name));
    return false;
}

// The new file. It gets a temporary name at once only where the file system cannot make a file without one. This object removes it, unless
// it has taken its final name.
class Copy {
public:
    Copy(FdRef parent, const std::string &name)
        : parent_(parent), temporary_(name.substr(0, 200) + ".new-" + random_hex(4)), fd_(open_at(parent, ".", O_TMPFILE | O_RDWR, 0600))
    {
        if (fd_ || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return;
        fd_ = open_at(parent, temporary_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        is_named_ = fd_.is_open();
    }
    Copy(const Copy &) = delete;
    Copy &operator=(const Copy &) = delete;
    ~Copy()
    {
        if (is_named_) unlinkat(parent_.get(), temporary_.c_str(), 0); // best_effort: the failure that led here is what counts
    }

    // These return false with the reason in errno.
    [[nodiscard]] bool is_open() const noexcept { return fd_.is_open(); }
    [[nodiscard]] bool fill(FdRef source, const struct stat &facts)
    {
        try {
            write_whole(fd_, read_whole(source, copied_size_limit, "a protected file"), "a copy of a protected file");
        } catch (const SystemFailure &failure) { // whose words do not name the file
            errno = failure.error_number();
            return false;
        }
        if (facts.st_gid != getegid() && fchown(fd_.get(), static_cast<uid_t>(-1), facts.st_gid) != 0) return false;
        if (fchmod(fd_.get(), facts.st_mode & kept_mode) != 0 || !take_attributes(source)) return false;
        const std::array<timespec, 2> times{facts.st_atim, facts.st_mtim};
        return futimens(fd_.get(), times.data()) == 0 && fdatasync(fd_.get()) == 0; // after a power cut it is the old one or this
    }

    // A file that somebody has renamed to this name since the look at `replaced` gets its name back (ESTALE).
    [[nodiscard]] bool take_the_place_of(const std::string &name, const struct stat &replaced)
    {
        const std::string itself = "/proc/self/fd/" + std::to_string(fd_.get());
        if (!is_named_ && linkat(AT_FDCWD, itself.c_str(), parent_.get(), temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
        is_named_ = true;
        if (!exchange_with(name)) {
            if (errno != EINVAL) return false;
            // best_effort: this file system (NFS) exchanges nothing, so a moment since the look remains.
            is_named_ = renameat(parent_.get(), temporary_.c_str(), parent_.get(), name.c_str()) != 0;
            return !is_named_;
        }
        if (holds(replaced)) return true;
        struct stat own {};
        is_named_ = exchange_with(name) && fstat(fd_.get(), &own) == 0 && holds(own);
        if (!is_named_) static_cast<void>(exchange_with(name)); // best_effort: a third file came between; nobody else's file is removed
        errno = ESTALE;
        return false;
    }

private:
    [[nodiscard]] bool exchange_with(const std::string &name)
    {
        return renameat2(parent_.get(), temporary_.c_str(), parent_.get(), name.c_str(), RENAME_EXCHANGE) == 0;
    }

    [[nodiscard]] bool holds(const struct stat &file) const
    {
        struct stat facts {};
        return fstatat(parent_.get(), temporary_.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(facts, file);
    }

    // Copies access lists and the user's own attributes; the system sets the others.
    [[nodiscard]] bool take_attributes(FdRef source)
    {
        std::string names(attributes_limit, '\0');
        const ssize_t length = flistxattr(source.get(), names.data(), names.size());
        if (length < 0) return errno == EOPNOTSUPP;
        std::string value(attributes_limit, '\0');
        for (std::size_t start = 0; start < static_cast<std::size_t>(length);) {
            const std::string name = names.c_str() + start;
            start += name.size() + 1;
            if (name.compare(0, 5, "user.") != 0 && name != "system.posix_acl_access") continue;
            const ssize_t size = fgetxattr(source.get(), name.c_str(), value.data(), value.size());
            if (size < 0 || fsetxattr(fd_.get(), name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0) return false;
        }
        return true;
    }

    FdRef parent_;
    std::string temporary_;
    UniqueFd fd_;
    bool is_named_ = false;
};

std::string remedy_for(int error, bool is_own)
{
    if (!is_own) return "it belongs to somebody else, who has to replace it by a copy of it";
    if (error == EBUSY) return "another session protects it just now; end that session, then try again";
    if (error == EFBIG) return "it is too large to be copied when a session starts; replace it by a copy of it";
    if (error == ESTALE) return "it changes all the time; try again";
    return std::string(SystemFailure(error, "replacing it by a copy of it").what()) +
           "; do that yourself, or give yourself the rights for it";
}

// 0 when it was done, or an errno.
int replace_by_copy(FdRef parent, const std::string &name)
{
    for (int attempt = 0; attempt < copying_attempts; ++attempt) {
        const UniqueFd source = find_beneath(parent, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        struct stat before {};
        if (!source || fstat(source.get(), &before) != 0) return errno;
        if (!S_ISREG(before.st_mode) || before.st_nlink < 2) return 0; // somebody else has just done it
        if (before.st_size > static_cast<off_t>(copied_size_limit)) return EFBIG;
        Copy copy(parent, name);
        if (!copy.is_open() || !copy.fill(source, before)) return errno;
        struct stat now {};
        struct stat named {};
        if (fstat(source.get(), &now) != 0 || fstatat(parent.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return errno;
        if (!is_unchanged(before, now) || !is_same_file(before, named)) continue;
        if (copy.take_the_place_of(name, before)) return 0;
        if (errno != ESTALE) return errno;
    }
    return ESTALE;
}

} // namespace

SingleNames::SingleNames(const GuardedTree &tree) : tree_(tree), mount_(mount_id(tree.top)), deadline_(in_seconds(mask_search_seconds)) {}

void SingleNames::require(const std::string &path)
{
    const auto [above, name] = split_last(path);
    const UniqueFd parent = look_beneath(tree_.top, above, O_PATH | O_DIRECTORY);
    struct stat facts {};
    if (!parent || fstatat(parent.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES) return; // it went away: the mount will report it
        throw_errno("examining " + escape_for_display(join_path(tree_.path, path)));
    }
    if (S_ISREG(facts.st_mode)) return make_single(parent, path, facts);
    std::vector<std::string> ahead;
    if (S_ISDIR(facts.st_mode)) ahead.push_back(path);
    while (!ahead.empty()) {
        const std::string directory = std::move(ahead.back());
        ahead.pop_back();
        look_into(directory, ahead);
    }
}

// In somebody else's directory the agent can change as little as the user. The user's own directory it could open again.
void SingleNames::take_closed(const std::string &path, int error)
{
    const bool is_closed = error == EACCES;
    if (is_closed && !is_own_directory(tree_, path)) return closed_.push_back(path);
    if (is_closed && !defence_is_on("protect-unreadable")) return;
    throw Failure(ExitStatus::configuration,
                  escape_for_display(join_path(tree_.path, path)) + " is protected (projects.protect) and cannot be listed (" +
                      SystemFailure(error, "open").what() +
                      "), so nobody knows whether the agent could change what is in it by another name (a hard link); give its owner "
                      "the rights to read and enter it, or remove it");
}

void SingleNames::look_into(const std::string &path, std::vector<std::string> &ahead)
{
    UniqueFd directory = look_beneath(tree_.top, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!directory && (errno == ENOENT || errno == ENOTDIR)) return; // it went away
    if (!directory) return take_closed(path, errno);
    if (mount_id(directory) != mount_) return; // another file system, which the agent is not shown
    DirectoryStream stream(std::move(directory));
    if (!stream) throw_errno("listing what is protected");
    while (const dirent *entry = stream.next()) {
        const std::string below = join_path(path, entry->d_name);
        if (++entries_ > mask_search_limit || Clock::now() > deadline_) too_much("has more in it than can be looked at");
        struct stat facts {};
        if (fstatat(stream.fd().get(), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
            if (errno == ENOENT) continue; // it went away
            return take_closed(path, errno);
        }
        if (S_ISDIR(facts.st_mode)) ahead.push_back(below);
        if (S_ISREG(facts.st_mode)) make_single(stream.fd(), below, facts);
    }
    if (errno != 0) throw_errno("listing what is protected");
}

void SingleNames::make_single(FdRef parent, const std::string &path, const struct stat &facts)
{
    const std::string name = split_last(path).second;
    if (facts.st_nlink < 2 || !may_change(parent, name, facts) || !defence_is_on("protect-single-names")) return;
    if (replaced_.size() == guard_limit) too_much("has more than " + std::to_string(guard_limit) + " files with several names");
    const bool is_own = facts.st_uid == geteuid();
    if (const int error = is_own ? replace_by_copy(parent, name) : EPERM; error != 0)
        throw Failure(
            error == EBUSY || error == ESTALE ? ExitStatus::limit : ExitStatus::configuration,
            escape_for_display(join_path(tree_.path, path)) + " has " + std::to_string(facts.st_nlink) +
                " names (hard links); the policy protects this one (projects.protect), and the agent could change the file by another: " +
                remedy_for(error, is_own));
    replaced_.push_back(path);
}

void SingleNames::too_much(const std::string &what) const
{
    throw Failure(FailureKind::too_large, "limit: what is protected in " + escape_for_display(tree_.path) + " (projects.protect) " + what +
                                              "; ask the administrator to protect fewer paths (projects.protect)");
}

std::vector<std::string> SingleNames::notices() const
{
    std::vector<std::string> notices;
    for (std::size_t index = 0; index < std::min(replaced_.size(), paths_named); ++index)
        notices.push_back("had several names (hard links) and was replaced by a copy, because it is protected: " +
                          escape_for_display(join_path(tree_.path, replaced_[index])));
    if (replaced_.size() > paths_named)
        notices.push_back("the same was done to " + std::to_string(replaced_.size() - paths_named) + " more protected files");
    for (const auto &path : closed_)
        notices.push_back("not searched for files with several names, because you cannot list it: " +
                          escape_for_display(join_path(tree_.path, path)));
    return notices;
}

} // namespace pi_agent

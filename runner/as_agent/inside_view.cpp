// Looking at the agent's home.
#include "runner/as_agent/inside_view.hpp"

#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

#include <cerrno>
#include <fcntl.h>

namespace pi_agent {

InsideFacts inside_facts(const struct stat &facts) noexcept
{
    return InsideFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_ctim)};
}

FdRef LastDirectory::look(const std::string &path)
{
    if (!known_ || path != path_) take(path, find_beneath(top_, path, O_PATH | O_DIRECTORY));
    errno = problem_;
    return fd_;
}

FdRef LastDirectory::find(const std::string &path)
{
    if (!known_ || path != path_) take(path, find_own_directory_beneath(top_, path));
    errno = problem_;
    return fd_;
}

FdRef LastDirectory::make(const std::string &path)
{
    if (!known_ || path != path_ || !fd_) take(path, ensure_directory_beneath(top_, path));
    return fd_;
}

void LastDirectory::take(const std::string &path, UniqueFd fd)
{
    problem_ = errno;
    path_ = path;
    fd_ = std::move(fd);
    known_ = true;
}

InsideState InsideView::state(const std::string &path, const ManifestEntry *known)
{
    const auto [directory_path, name] = split_last(path);
    const FdRef directory = last_.look(directory_path);
    struct stat facts {};
    // In a directory that the agent closed there may be anything.
    if (directory.get() < 0 || fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == EACCES ? InsideState::other : InsideState::absent;
    if (known == nullptr || known->inside.inode == 0 || !S_ISREG(facts.st_mode)) return InsideState::other;
    if (!defence_is_on("change-time")) { // as rsync looks: the agent can set both back
        return known->inside.size == static_cast<std::uint64_t>(facts.st_size) && known->host.modified == nanoseconds_of(facts.st_mtim)
                   ? InsideState::as_synced
                   : InsideState::other;
    }
    return known->inside == inside_facts(facts) ? InsideState::as_synced : InsideState::other;
}

} // namespace pi_agent

// What an agent's files take on disk, and the project of quotas that they join.
#include "runner/as_agent/disk.hpp"

#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "runner/wire/answer.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <set>

namespace pi_agent {

// --- Puts files into a project of disk quotas (FS_IOC_FSSETXATTR): one of them, or all of an agent's with the agent's rights.

namespace {

constexpr int joined_depth_limit = 200; // each level costs a descriptor
constexpr unsigned joined_between_words = 1024;

// False with the reason in errno.
bool try_join(FdRef file, std::uint32_t project, bool passes_on)
{
    fsxattr facts{};
    if (ioctl(file.get(), FS_IOC_FSGETXATTR, &facts) != 0) return false;
    const std::uint32_t flags = facts.fsx_xflags | (passes_on ? FS_XFLAG_PROJINHERIT : 0);
    if (facts.fsx_projid == project && facts.fsx_xflags == flags) return true;
    facts.fsx_projid = project;
    facts.fsx_xflags = flags;
    return ioctl(file.get(), FS_IOC_FSSETXATTR, &facts) == 0;
}

// What had this name is gone, or something new has it, which has joined by itself.
bool has_changed(int reason)
{
    return reason == ENOENT || reason == ELOOP || reason == ENOTDIR || reason == ENXIO;
}

class Joining {
public:
    Joining(std::uint32_t project, FdRef channel, const Joined &joined) : project_(project), channel_(channel), joined_(joined) {}

    void join(FdRef top)
    {
        device_ = examine(top, "examining the agent's home").st_dev;
        join_project(top, project_, "the agent's home");
        join_content(top, "", 0);
    }

private:
    // `path` of the directory, below the top and with a slash at its end.
    void join_content(FdRef directory, const std::string &path, int depth)
    {
        if (depth == joined_depth_limit) refuse("what lies " + std::to_string(depth) + " directories deep", ENAMETOOLONG);
        auto stream = DirectoryStream::reopened(directory);
        if (!stream) throw_errno("listing a directory of the agent's home");
        while (const dirent *entry = stream.next())
            join_entry(directory, path, entry->d_name, depth);
        if (errno != 0) throw_errno("listing a directory of the agent's home");
    }

    void join_entry(FdRef parent, const std::string &above, const std::string &name, int depth)
    {
        if (++entries_ % joined_between_words == 0) send_progress(channel_);
        struct stat facts {};
        if (fstatat(parent.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) return;
            refuse(name, errno);
        }
        const bool is_directory = S_ISDIR(facts.st_mode);
        if ((!is_directory && !S_ISREG(facts.st_mode)) || facts.st_uid != geteuid() || facts.st_dev != device_) return;
        const mode_t rights = is_directory ? 0500 : 0400;
        const bool is_closed = (facts.st_mode & rights) != rights;
        // The agent may have taken its own rights away; they are given back for a moment.
        if (is_closed && fchmodat(parent.get(), name.c_str(), (facts.st_mode & 07777) | rights, AT_SYMLINK_NOFOLLOW) != 0) {
            if (has_changed(errno)) return;
            refuse(name, errno);
        }
        const UniqueFd file = open_at(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (is_directory ? O_DIRECTORY : 0));
        if (!file) {
            if (has_changed(errno)) return;
            refuse(name, errno);
        }
        const bool has_joined = try_join(file, project_, is_directory);
        const int reason = errno;
        if (has_joined && is_directory) join_content(file, above + name + "/", depth + 1);
        if (is_closed) fchmod(file.get(), facts.st_mode & 07777); // best_effort: it is the agent's own
        if (!has_joined) refuse(name, reason);
        if (!is_directory && joined_) joined_(above + name, facts, examine(file, "examining a file that has joined"));
    }

    [[noreturn]] static void refuse(const std::string &name, int reason)
    {
        throw Failure(FailureKind::agent_home,
                      "the agent's home cannot be held to limits.disk, because " + escape_for_display(name) +
                          " in it cannot: " + SystemFailure(reason, "setting its project").what() +
                          "; ask the administrator to move it away, or to empty the home (pi-agentctl state reset)");
    }

    std::uint32_t project_;
    FdRef channel_;
    const Joined &joined_;
    dev_t device_ = 0;
    unsigned entries_ = 0;
};

} // namespace

std::optional<std::uint32_t> project_of(FdRef file)
{
    fsxattr facts{};
    if (ioctl(file.get(), FS_IOC_FSGETXATTR, &facts) != 0) return std::nullopt;
    return facts.fsx_projid;
}

bool passes_project_on(FdRef directory, std::uint32_t project)
{
    fsxattr facts{};
    return ioctl(directory.get(), FS_IOC_FSGETXATTR, &facts) == 0 && facts.fsx_projid == project &&
           (facts.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0;
}

void join_project(FdRef directory, std::uint32_t project, const char *what)
{
    if (!try_join(directory, project, true)) throw_errno(std::string("setting the project of ") + what);
}

void join_tree(const AsUser & /*agent*/, FdRef top, std::uint32_t project, FdRef channel, const Joined &joined)
{
    Joining(project, channel, joined).join(top);
}

// --- Adds up what a directory takes on disk.

namespace {

constexpr int tree_depth_limit = 200; // each level costs a descriptor
constexpr unsigned entries_between_signs = 4096;
constexpr std::uint64_t bytes_of_block = 512; // stat(2)

// In a child with the owner's rights, so that nothing that the owner arranges there meets root.
class TreeSize {
public:
    explicit TreeSize(FdRef channel) : channel_(channel) {}

    std::uint64_t measure(FdRef top)
    {
        struct stat facts = examine(top, "measuring a directory");
        device_ = facts.st_dev;
        return static_cast<std::uint64_t>(facts.st_blocks) * bytes_of_block + add_content(top, 0);
    }

private:
    std::uint64_t add_content(FdRef directory, int depth)
    {
        if (depth == tree_depth_limit)
            return 0; // what is deeper than that is missing from the sum, and keeps nothing else from being measured
        auto stream = DirectoryStream::reopened(directory);
        std::uint64_t size = 0;
        if (!stream) return size; // the agent took away its own right to look: what is there is missing from the sum
        while (const dirent *entry = stream.next())
            size += add_entry(directory, entry->d_name, depth);
        return size;
    }

    std::uint64_t add_entry(FdRef directory, const std::string &name, int depth)
    {
        if (++entries_ % entries_between_signs == 0) send_progress(channel_);
        struct stat facts {};
        if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || facts.st_dev != device_) return 0;
        if (facts.st_nlink > 1 && !S_ISDIR(facts.st_mode) && !seen_.insert(facts.st_ino).second) return 0;
        std::uint64_t size = static_cast<std::uint64_t>(facts.st_blocks) * bytes_of_block;
        if (!S_ISDIR(facts.st_mode)) return size;
        const UniqueFd child = open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
        return child ? size + add_content(child, depth + 1) : size;
    }

    FdRef channel_;
    dev_t device_ = 0;
    std::set<ino_t> seen_;
    unsigned entries_ = 0;
};

} // namespace

std::uint64_t measure_tree(const AsUser & /*owner*/, FdRef channel, FdRef top)
{
    return TreeSize(channel).measure(top);
}

} // namespace pi_agent

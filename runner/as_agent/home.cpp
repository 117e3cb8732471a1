// The agent's home: places that others mount on, removal of trees, what is on disk and its project of quotas.
#include "runner/as_agent/home.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cstdio>
#include <cstdlib>

namespace pi_agent {

namespace {

// Whether the agent's home holds anything there besides what every home is given (runner/as_agent/writer.hpp).
bool holds_own(FdRef directory, FdRef defaults, const std::string &place)
{
    const UniqueFd given = find_beneath(defaults, place, O_RDONLY | O_DIRECTORY);
    std::vector<std::string> names = given ? names_in(given) : std::vector<std::string>();
    std::sort(names.begin(), names.end());
    return find_name(directory, [&](const std::string &name) { return !std::binary_search(names.begin(), names.end(), name); });
}

bool leads_to(FdRef directory, const std::string &name, const std::string &target)
{
    return read_link(directory, name) == target;
}

constexpr int open_levels = 32; // each costs two descriptors and a buffer of the C library's

// ".." is never used to come back from the depth: another process may have moved the directory meanwhile.
class Emptying {
public:
    explicit Emptying(FdRef top) : top_(top) {}

    void run()
    {
        // Somebody who needs no rights may have opened it for us.
        if (defence_is_on("removal-rights")) fchmod(top_.get(), 0700); // best_effort: what is missing shows below
        do {
            left_ = removed_ = 0;
            problem_.clear();
            pass(top_, 0);
        } while (left_ > 0 && removed_ > 0);
        if (left_ > 0)
            throw Failure(ExitStatus::system_failure, problem_.empty() ? "a directory was moved while it was removed" : problem_);
    }

private:
    void pass(FdRef directory, int depth)
    {
        auto stream = DirectoryStream::reopened(directory);
        if (!stream) return keep(false, "listing a directory that is removed");
        while (const dirent *entry = stream.next())
            remove(directory, entry->d_name, entry->d_type, depth);
    }

    // Tries to open a directory first. Whatever takes the name meanwhile is not entered.
    void remove(FdRef directory, const std::string &name, unsigned char type, int depth)
    {
        if (type != DT_REG) {
            if (const UniqueFd child = try_take_directory(directory, name)) {
                if (depth >= open_levels && defence_is_on("removal-depth")) return move_up(directory, name);
                pass(child, depth + 1);
            }
            if (unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0) return static_cast<void>(++removed_);
            if (errno != ENOTDIR) return keep(errno == ENOENT, "removing " + escape_for_display(name));
        }
        if (unlinkat(directory.get(), name.c_str(), 0) == 0) return static_cast<void>(++removed_);
        keep(errno == ENOENT, "removing " + escape_for_display(name));
    }

    void move_up(FdRef directory, const std::string &name)
    {
        if (renameat2(directory.get(), name.c_str(), top_.get(), ("removed-" + random_hex(8)).c_str(), RENAME_NOREPLACE) != 0)
            return keep(errno == ENOENT, "moving " + escape_for_display(name));
        ++left_;
        ++removed_; // from where it was: the next pass continues
    }

    // Reports the first problem: a directory that is not empty because of it comes later.
    void keep(bool is_gone, const std::string &action)
    {
        if (is_gone) return;
        if (problem_.empty()) problem_ = SystemFailure(errno, action).what();
        ++left_;
    }

    FdRef top_;
    std::uint64_t left_ = 0;
    std::uint64_t removed_ = 0;
    std::string problem_;
};

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

bool is_as_copied(const std::string &path, const struct stat &copy)
{
    struct stat facts {};
    return lstat(("/etc/" + path).c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == copy.st_size &&
           facts.st_mtim.tv_sec == copy.st_mtim.tv_sec && facts.st_mtim.tv_nsec == copy.st_mtim.tv_nsec;
}

// Adds the directory `below` if all of it is as it was copied, and otherwise what of it is. Returns which.
bool add_unchanged(FdRef copies, const std::string &below, std::vector<std::string> &paths)
{
    const UniqueFd directory = find_beneath(copies, below.empty() ? "." : below, O_RDONLY | O_DIRECTORY);
    if (!directory) return false; // dpkg's trigger removes it just now
    const std::size_t before = paths.size();
    bool is_whole = true;
    for (const auto &name : names_in(directory)) {
        const std::string path = join_path(below, name);
        struct stat facts {};
        if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) continue; // removed meanwhile
        if (S_ISDIR(facts.st_mode)) {
            is_whole = add_unchanged(copies, path, paths) && is_whole;
        } else {
            const bool is_same = is_as_copied(path, facts);
            if (is_same) paths.push_back(path);
            is_whole = is_same && is_whole;
        }
    }
    if (!is_whole || below.empty()) return is_whole;
    paths.resize(before);
    paths.push_back(below);
    return true;
}

} // namespace

EtcFile read_etc_file(const std::string &name)
{
    const std::string path = "/etc/" + name;
    const UniqueFd file = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {EtcFileState::missing};
    if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) > host_file_limit) return {EtcFileState::too_large};
    const std::unique_ptr<char, decltype(&std::free)> canonical(realpath(path.c_str(), nullptr), &std::free);
    return {EtcFileState::read, canonical ? canonical.get() : path, read_whole(file, host_file_limit, path)};
}

UnchangedFiles find_unchanged_files()
{
    UnchangedFiles found;
    const UniqueFd copies = UniqueFd::adopt(open(package_files_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (copies) add_unchanged(copies, "", found.paths); // without them sessions see less
    return found;
}

std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at)
{
    std::vector<std::string> filled;
    for (std::size_t index = 0; index < places.size(); ++index) {
        const UniqueFd made = ensure_directory_beneath(agent_home, places[index]);
        if (index < looked_at && holds_own(made, defaults, places[index])) filled.push_back(places[index]);
    }
    return filled;
}

std::string link_alias(const AsUser & /*agent*/, FdRef home, const std::string &alias, const std::string &target)
{
    const std::string shown = std::string("~/") + alias_directory + "/" + alias;
    if (mkdirat(home.get(), alias_directory, 0700) != 0 && errno != EEXIST) throw_errno(std::string("making ~/") + alias_directory);
    const UniqueFd directory = find_beneath(home, alias_directory, O_RDONLY | O_DIRECTORY);
    if (!directory) return std::string("~/") + alias_directory + " of the agent's home is not a directory that the agent may enter";
    if (leads_to(directory, alias, target)) return {};
    // Removes the empty directory that an earlier session with `paths: alias` left.
    if (unlinkat(directory.get(), alias.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && errno != ENOTDIR)
        return shown + " of the agent's home is a directory of its own";
    if (symlinkat(target.c_str(), directory.get(), alias.c_str()) != 0) {
        if (errno == EEXIST) return shown + " of the agent's home is something else";
        throw_errno("making the link " + shown);
    }
    return {};
}

void make_alias_directory(const AsUser & /*agent*/, FdRef home, const std::string &alias)
{
    ensure_directory_beneath(home, std::string(alias_directory) + "/" + alias);
}

void remove_content_beneath(FdRef directory)
{
    Emptying(directory).run();
}

void remove_beneath(FdRef parent, const std::string &name)
{
    if (unlinkat(parent.get(), name.c_str(), 0) == 0 || errno == ENOENT) return;
    if (errno != EISDIR && errno != EPERM) throw_errno("removing " + escape_for_display(name));
    {
        const UniqueFd directory = try_take_directory(parent, name);
        if (!directory) throw_errno("removing " + escape_for_display(name));
        Emptying(directory).run();
    }
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) throw_errno("removing " + escape_for_display(name));
}

std::optional<std::uint32_t> project_of(FdRef file)
{
    fsxattr facts{};
    return ioctl(file.get(), FS_IOC_FSGETXATTR, &facts) == 0 ? std::optional(facts.fsx_projid) : std::nullopt;
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

std::uint64_t measure_tree(const AsUser & /*owner*/, FdRef channel, FdRef top)
{
    return TreeSize(channel).measure(top);
}

} // namespace pi_agent

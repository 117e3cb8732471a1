// The caller's directories that a session works in: home and temporary files.
#include "runner/as_user/project.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/toolchains.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/host_view.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pi_agent {

namespace {

using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(FdRef directory, const std::string &path, int follow = AT_SYMLINK_NOFOLLOW)
{
    struct stat facts {};
    if (fstatat(directory.get(), path.c_str(), &facts, follow | AT_NO_AUTOMOUNT | (path.empty() ? AT_EMPTY_PATH : 0)) != 0)
        return std::nullopt;
    return Inode{facts.st_dev, facts.st_ino};
}

// What is never shown, and every directory above it up to the home: a directory with the inode of one of these holds it, by whatever path.
// Each comes with its path: what is masked in a cache may be there, and nowhere else.
std::multimap<Inode, std::string> hidden_inodes(FdRef home)
{
    std::set<std::string> paths{""};
    for (const auto &never : never_shown())
        for (std::size_t end = never.find('/');; end = never.find('/', end + 1)) {
            paths.insert(never.substr(0, end));
            if (end == std::string::npos) break;
        }
    std::multimap<Inode, std::string> inodes;
    for (const auto &path : paths)
        for (const int follow : {AT_SYMLINK_NOFOLLOW, 0}) // it may be a symlink to the real place
            if (const auto inode = inode_of(home, path, follow))
                inodes.emplace(*inode, path);
            else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EACCES) // nobody is shown what the user may not see
                throw_errno("looking at ~/" + path);
    return inodes;
}

std::string problem_of_error(int error)
{
    if (error == ELOOP) return "a symlink is on the way; name the directory that it leads to";
    if (error == ENOTDIR) return "it is a symlink or not a directory; name the directory itself";
    return "it cannot be opened (" + std::string(SystemFailure(error, "open").what()) + ")";
}

class HomeFinder {
public:
    HomeFinder(FdRef home, OpenedHome &found) : home_(home), found_(found) {}

    void look_at(const std::vector<PolicyPath> &paths, bool is_cache)
    {
        for (const auto &path : paths) {
            UniqueFd directory = find_beneath(home_, path.path, O_PATH | O_DIRECTORY);
            std::string problem = directory ? problem_of(directory, is_cache ? path.path : "") : problem_of_error(errno);
            if (!directory && !leads_anywhere(path.path)) continue; // also a link to nothing
            found_.directories.push_back({path.path, is_cache, std::move(directory), std::move(problem)});
        }
    }

private:
    [[nodiscard]] bool leads_anywhere(const std::string &path) const
    {
        struct stat facts {};
        return fstatat(home_.get(), path.c_str(), &facts, AT_NO_AUTOMOUNT) == 0 || errno != ENOENT;
    }

    [[nodiscard]] std::string problem_of(FdRef directory, const std::string &cache)
    {
        if (!hidden_) hidden_ = hidden_inodes(home_); // most homes hold none of the listed paths, and need no look
        const auto inode = inode_of(directory, "");
        bool is_hidden = !inode;
        if (inode)
            for (auto [one, end] = hidden_->equal_range(*inode); one != end; ++one)
                is_hidden |= one->second != cache || masked_in(cache).empty();
        if (is_hidden && defence_is_on("hidden-inodes")) return "something is mounted there that holds, or is, what no session is shown";
        return "";
    }

    FdRef home_;
    std::optional<std::multimap<Inode, std::string>> hidden_;
    OpenedHome &found_;
};

// Mounts inside the root are hidden from the agent, so a directory there would not be seen.
UniqueFd enter(FdRef parent, const std::string &name)
{
    const std::uint64_t inside = defence_is_on("tmpdir-beneath") ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV : 0;
    return open_resolved(parent, name, O_PATH | O_DIRECTORY, inside); // search permission is enough
}

[[noreturn]] void refuse_component(const std::string &path)
{
    switch (errno) {
    case ELOOP:
        refuse_tmpdir(path + " is a symlink, which could lead out of the root; name the directory itself");
    case ENOTDIR:
        refuse_tmpdir(path + " is not a directory; name another");
    case EXDEV:
        refuse_tmpdir(path + " is another file system, mounted inside the root, which the agent does not see; name another");
    case EACCES:
        refuse_tmpdir("you may not enter or write " + path + "; name another");
    default:
        throw_errno("making the temporary directory " + path);
    }
}

} // namespace

OpenedHome find_home_directories(const Account &user, const ToolchainsPolicy &toolchains)
{
    OpenedHome found;
    if (toolchains.readable.paths.empty() && toolchains.caches.paths.empty()) return found;
    const UniqueFd home = open_at(FdRef(AT_FDCWD), user.home, O_PATH | O_DIRECTORY);
    if (!home) return found; // whatever needs the home reports it
    found.path = kernel_path(home);
    HomeFinder finder(home, found);
    finder.look_at(toolchains.readable.paths, false);
    finder.look_at(toolchains.caches.paths, true);
    return found;
}

void make_user_tmpdir(const Account &caller, FdRef root, const std::string &place, unsigned mask)
{
    UniqueFd current = open_or_throw("opening the root", root, ".", O_PATH | O_DIRECTORY);
    const std::vector<std::string> components = path_components(place);
    std::string path;
    umask(0);
    for (std::size_t index = 0; index < components.size(); ++index) {
        path += (path.empty() ? "" : "/") + escape_for_display(components[index]);
        const mode_t mode = index + 1 == components.size() ? 0700 : 0777 & ~mask;
        if (mkdirat(current.get(), components[index].c_str(), mode) != 0 && errno != EEXIST) refuse_component(path);
        current = enter(current, components[index]);
        if (!current) refuse_component(path);
    }
    if (examine(current, "examining the temporary directory " + path).st_uid != caller.uid.value() && defence_is_on("tmpdir-owner"))
        refuse_tmpdir(path + " belongs to another user, who could interfere with the agent's files; name a directory of your own");
}

} // namespace pi_agent

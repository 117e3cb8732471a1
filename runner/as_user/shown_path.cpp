// Following paths inside the shown project one component at a time.
#include "runner/as_user/git_paths.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/namespaces.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t links_at_most = 40; // the kernel's own limit

// One walk: the components that are left, and where it is now.
class Walk {
public:
    Walk(const GuardedTree &tree, const std::string &base) : tree_(tree), mount_(mount_id(tree.top)) { found_.path = base; }

    ShownPath follow(const std::string &path)
    {
        found_.kind = ShownPath::Kind::directory;
        if (!go(path)) return std::move(found_);
        while (!ahead_.empty()) {
            const std::string name = ahead_.front();
            ahead_.pop_front();
            if (!step(name)) break;
        }
        return std::move(found_);
    }

private:
    bool stop(ShownPath::Kind kind)
    {
        found_.kind = kind;
        return false;
    }

    // Puts a path before the components that are left. False when it leads out.
    bool go(const std::string &path)
    {
        std::vector<std::string> names = path_components(path);
        if (!path.empty() && path[0] == '/') {
            const std::vector<std::string> top = path_components(tree_.path);
            if (names.size() < top.size() || !std::equal(top.begin(), top.end(), names.begin())) return stop(ShownPath::Kind::outside);
            names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(top.size()));
            found_.path.clear();
        }
        ahead_.insert(ahead_.begin(), names.begin(), names.end());
        return true;
    }

    bool step(const std::string &name)
    {
        if (name == "..") {
            if (found_.path.empty()) return stop(ShownPath::Kind::outside);
            found_.path = split_last(found_.path).first;
            return true;
        }
        const std::string path = join_path(found_.path, name);
        const UniqueFd fd = look_beneath(tree_.top, path, O_PATH);
        if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
            found_.rest = name;
            for (const auto &later : ahead_)
                found_.rest += "/" + later;
            return stop(ShownPath::Kind::missing);
        }
        if (!fd && errno == EACCES && is_own_directory(tree_, found_.path)) return stop(ShownPath::Kind::closed);
        if (!fd && (errno == EACCES || errno == ENAMETOOLONG)) return stop(ShownPath::Kind::unclear);
        if (!fd) throw_errno("looking at " + escape_for_display(join_path(tree_.path, path)));
        if (mount_id(fd) != mount_) {
            found_.path = path;
            return stop(ShownPath::Kind::hidden);
        }
        const struct stat facts = examine(fd, "examining a path in the project");
        if (S_ISLNK(facts.st_mode)) {
            found_.links.push_back(path);
            return found_.links.size() > links_at_most ? stop(ShownPath::Kind::unclear) : go(link_target(fd, path));
        }
        found_.path = path;
        if (S_ISDIR(facts.st_mode)) return true;
        found_.kind = ShownPath::Kind::other; // nothing can be made below a file as long as it exists
        return false;
    }

    const GuardedTree &tree_;
    std::uint64_t mount_;
    std::deque<std::string> ahead_;
    ShownPath found_;
};

} // namespace

bool is_own_directory(const GuardedTree &tree, const std::string &path)
{
    const UniqueFd directory = look_beneath(tree.top, path, O_PATH | O_DIRECTORY);
    struct stat facts {};
    return directory && fstat(directory.get(), &facts) == 0 && facts.st_uid == geteuid();
}

ShownPath find_shown(const GuardedTree &tree, const std::string &base, const std::string &path)
{
    return Walk(tree, base).follow(path);
}

} // namespace pi_agent

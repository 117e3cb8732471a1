// Follows paths of the shown project, and finds those of git that run something, without running it (gitrepository-layout(5)).
#include "runner/as_user/protected_paths.hpp"

#include "common/as_user/git_syntax.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <deque>

namespace pi_agent {

namespace {

constexpr std::size_t links_at_most = 40; // the kernel's own limit

// One walk: the components that are left, and where it is now.
class Walk {
public:
    Walk(const GuardedTree &tree, const std::string &base, Mounts mounts) : tree_(tree)
    {
        if (mounts == Mounts::hidden) mount_ = mount_id(tree.top);
        found_.path = base;
    }

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

    // Nothing can be there as long as what was found is as it is.
    bool stop_before(const std::string &name, ShownPath::Kind kind)
    {
        found_.rest = name;
        for (const auto &later : ahead_)
            found_.rest = join_path(found_.rest, later);
        return stop(kind);
    }

    // Whether the path begins with a name of the tree, which is taken off it.
    static bool take_off(const std::string &top_path, std::vector<std::string> &names)
    {
        const std::vector<std::string> top = path_components(top_path);
        if (names.size() < top.size() || !std::equal(top.begin(), top.end(), names.begin())) return false;
        names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(top.size()));
        return true;
    }

    // Puts a path before the components that are left. False when it leads out.
    bool go(const std::string &path)
    {
        std::vector<std::string> names = path_components(path);
        if (!path.empty() && path[0] == '/') {
            if (!take_off(tree_.path, names) && (tree_.name.empty() || !take_off(tree_.name, names))) return stop(ShownPath::Kind::outside);
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
        if (!fd && (errno == ENOENT || errno == ENOTDIR)) return stop_before(name, ShownPath::Kind::missing);
        if (!fd && errno == EACCES && is_own_directory(tree_, found_.path)) return stop(ShownPath::Kind::closed);
        if (!fd && (errno == EACCES || errno == ENAMETOOLONG)) return stop(ShownPath::Kind::unclear);
        if (!fd) throw_errno("looking at " + escape_for_display(join_path(tree_.path, path)));
        if (mount_ && mount_id(fd) != mount_) {
            found_.path = path;
            return stop(ShownPath::Kind::hidden);
        }
        const struct stat facts = examine(fd, "examining a path in the project");
        if (S_ISLNK(facts.st_mode)) {
            found_.links.push_back(path);
            return found_.links.size() > links_at_most ? stop(ShownPath::Kind::endless) : go(link_target(fd, path));
        }
        found_.path = path;
        if (S_ISDIR(facts.st_mode)) return true;
        return stop_before("", ShownPath::Kind::other);
    }

    const GuardedTree &tree_;
    std::optional<std::uint64_t> mount_; // of the tree, where others are hidden
    std::deque<std::string> ahead_;
    ShownPath found_;
};

std::string way_from(const std::vector<std::string> &from, const std::vector<std::string> &to)
{
    const auto [left, right] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
    std::string way;
    for (auto up = left; up != from.end(); ++up)
        way = join_path(way, "..");
    for (auto down = right; down != to.end(); ++down)
        way = join_path(way, *down);
    return way.empty() ? "." : way;
}

constexpr std::size_t small_file_limit = 1U << 20U;

bool is_there(const GuardedTree &tree, const std::string &path)
{
    return look_beneath(tree.top, path, O_PATH).is_open() || errno != ENOENT;
}

// Names what keeps the user out: the path itself, or the last directory on the way that can be seen.
[[noreturn]] void refuse_unreadable(const GuardedTree &tree, const std::string &path)
{
    std::string closed = path;
    UniqueFd place = look_beneath(tree.top, closed, O_PATH);
    for (; !place && !closed.empty(); place = look_beneath(tree.top, closed, O_PATH))
        closed = split_last(closed).first;
    struct stat facts {};
    if (place) facts = examine(place, "examining a path of git");
    const bool is_own = place && facts.st_uid == geteuid();
    throw Failure(FailureKind::protection, escape_for_display(join_path(tree.path, closed)) +
                                               (S_ISDIR(facts.st_mode) ? " is a directory of git that you may not enter"
                                                                       : " is a file of git that you cannot read") +
                                               ", so what it names cannot be protected (projects.protect); " +
                                               (is_own ? "it is yours: give yourself access to it, or remove it"
                                                       : "ask its owner to make it readable for you, or to remove it"));
}

// git ignores what has another kind than the one asked for, and what has gone. Any other errno means that nobody can tell.
void require_nothing_there(const GuardedTree &tree, const std::string &path)
{
    const int problem = errno;
    if (problem == ENOENT || problem == ENOTDIR || problem == ELOOP || problem == ENXIO || !defence_is_on("protect-unreadable")) return;
    if (problem == EACCES) refuse_unreadable(tree, path);
    throw SystemFailure(problem, "looking at " + escape_for_display(join_path(tree.path, path)));
}

bool is_directory(const GuardedTree &tree, const std::string &path)
{
    const UniqueFd directory = look_beneath(tree.top, path, O_PATH | O_DIRECTORY);
    if (!directory) require_nothing_there(tree, path);
    return directory.is_open();
}

class Search {
public:
    Search(const GuardedTree &tree, std::size_t most) : tree_(tree), most_(most) {}

    std::vector<GuardedPath> of_repositories(const std::vector<std::string> &repositories)
    {
        std::vector<std::string> own;
        for (const auto &repository : repositories) {
            found_.push_back({repository, ".git", Standin::none, true});
            if (std::optional<std::string> gitdir = follow_dot_git(repository)) own.push_back(std::move(*gitdir));
        }
        for (const auto &gitdir : own)
            note_own(gitdir);
        for (const auto &gitdir : own)
            add_gitdir(gitdir);
        return std::move(found_);
    }

    std::optional<std::string> shared_directory(const std::string &repository)
    {
        const auto own = follow_dot_git(repository);
        return own ? common_of(*own) : std::nullopt;
    }

    std::vector<GuardedPath> of_gitdir()
    {
        note_own("");
        add_gitdir("");
        return std::move(found_);
    }

private:
    void guard(const std::string &base, const std::string &path, Standin standin, bool is_inner)
    {
        if (found_.size() >= most_)
            throw Failure(FailureKind::too_large,
                          "limit: the repository in " + escape_for_display(tree_.path) + " has more than " + std::to_string(most_) +
                              " paths from which git runs programs (from submodules and worktrees); remove worktrees that you do not need "
                              "('git worktree prune'), or ask the administrator to list the paths to protect (projects.protect)");
        found_.push_back({base, path, standin, false, false, is_inner});
    }

    // Call it before anything is listed. Records the git directories that the session was started in: one may also be a submodule's.
    void note_own(const std::string &gitdir)
    {
        own_.insert(gitdir);
        if (auto common = common_of(gitdir)) own_.insert(std::move(*common));
    }

    // The git directory that this one shares with others, or itself; none where it is in another tree, or is not a directory.
    std::optional<std::string> common_of(const std::string &gitdir)
    {
        const auto text = small_text(tree_, gitdir, "commondir");
        if (!text) return gitdir;
        ShownPath common = find_shown(tree_, gitdir, std::string(trimmed(*text)));
        return common.kind == ShownPath::Kind::directory ? std::optional(std::move(common.path)) : std::nullopt;
    }

    // What a worktree shares with others may be in another tree, or may not exist.
    void add_gitdir(const std::string &own)
    {
        const auto common = common_of(own);
        if (!common) return add_private(own, Standin::comment);
        if (*common != own) add_private(own, worktree_config_of(*common));
        add_common(*common);
    }

    // The git directory that belongs to a working tree; none where it is in another tree, or does not exist.
    std::optional<std::string> follow_dot_git(const std::string &working_tree)
    {
        ShownPath place = find_shown(tree_, working_tree, ".git");
        if (place.kind == ShownPath::Kind::other) {
            const auto text = small_text(tree_, "", place.path);
            const auto gitdir = text ? gitdir_in(*text) : std::nullopt;
            if (!gitdir) return std::nullopt; // git does not accept such a repository
            place = find_shown(tree_, split_last(place.path).first, *gitdir);
        }
        return place.kind == ShownPath::Kind::directory ? std::optional(place.path) : std::nullopt;
    }

    Standin worktree_config_of(const std::string &gitdir)
    {
        const auto config = small_text(tree_, gitdir, "config");
        // git reads config.worktree only where the repository's own config, not one that it includes, says so.
        return config && lower_case(*config).find("worktreeconfig") != std::string::npos ? Standin::comment : Standin::none;
    }

    // A worktree's own part.
    void add_private(const std::string &gitdir, Standin worktree_config)
    {
        if (!seen_.insert(gitdir).second) return;
        const bool is_inner = !own_.contains(gitdir);
        guard(gitdir, "commondir", Standin::none, is_inner);
        guard(gitdir, "gitdir", Standin::none, is_inner);
        guard(gitdir, "config.worktree", worktree_config, is_inner);
    }

    void add_common(const std::string &gitdir)
    {
        if (!seen_.insert(gitdir).second) return;
        const Standin worktree_config = worktree_config_of(gitdir);
        const bool is_inner = !own_.contains(gitdir);
        guard(gitdir, "hooks", Standin::directory, is_inner);
        guard(gitdir, "config", Standin::comment, is_inner);
        guard(gitdir, "config.worktree", worktree_config, is_inner);
        guard(gitdir, "commondir", Standin::commondir, is_inner);
        guard(gitdir, "info/attributes", Standin::comment, is_inner);
        for (const auto &name : entries(gitdir, "worktrees")) {
            const std::string own = join_path(gitdir, "worktrees/" + name);
            if (!is_directory(tree_, own)) continue;
            add_private(own, worktree_config);
            if (const auto text = small_text(tree_, own, "gitdir")) guard_shown(own, std::string(trimmed(*text)));
        }
        add_modules(gitdir, "modules");
    }

    // Names of submodules have slashes, and each part is a directory.
    void add_modules(const std::string &gitdir, const std::string &below)
    {
        for (const auto &name : entries(gitdir, below)) {
            const std::string path = join_path(below, name);
            const std::string module = join_path(gitdir, path);
            if (!is_directory(tree_, module)) continue;
            if (!is_there(tree_, module + "/HEAD")) {
                add_modules(gitdir, path);
                continue;
            }
            add_common(module);
            const auto config = small_text(tree_, module, "config");
            if (const auto worktree = config ? worktree_of_config(*config) : std::nullopt) guard_shown(module, *worktree + "/.git");
        }
    }

    // The `.git` file of a working tree that is shown.
    void guard_shown(const std::string &base, const std::string &path)
    {
        if (find_shown(tree_, base, path).kind == ShownPath::Kind::other) guard(base, path, Standin::none, !own_.contains(base));
    }

    std::vector<std::string> entries(const std::string &gitdir, const std::string &below)
    {
        const UniqueFd directory = look_beneath(tree_.top, join_path(gitdir, below), O_RDONLY | O_DIRECTORY);
        if (!directory) {
            require_nothing_there(tree_, join_path(gitdir, below));
            if (errno == ELOOP) found_.push_back({gitdir, below, Standin::none, true}); // guard at least the symlink
            return {};
        }
        std::vector<std::string> names = names_in(directory);
        std::sort(names.begin(), names.end());
        return names;
    }

    const GuardedTree &tree_;
    std::size_t most_;
    std::set<std::string> own_; // git directories of the repositories that were asked for
    std::set<std::string> seen_;
    std::vector<GuardedPath> found_;
};

} // namespace

bool is_own_directory(const GuardedTree &tree, const std::string &path)
{
    const UniqueFd directory = look_beneath(tree.top, path, O_PATH | O_DIRECTORY);
    struct stat facts {};
    return directory && fstat(directory.get(), &facts) == 0 && facts.st_uid == geteuid();
}

ShownPath find_shown(const GuardedTree &tree, const std::string &base, const std::string &path, Mounts mounts)
{
    return Walk(tree, base, mounts).follow(path);
}

std::optional<std::string> find_kept_link(const GuardedTree &tree, const std::string &path, const std::string &target,
                                          const std::function<bool(const std::string &path)> &may_lead_to)
{
    if (target.empty()) return std::nullopt;
    try {
        const ShownPath end = find_shown(tree, split_last(path).first, target, Mounts::entered);
        const bool is_file = end.kind == ShownPath::Kind::other &&
                             S_ISREG(examine(open_beneath(tree.top, end.path, O_PATH), "examining the target of a link").st_mode);
        if ((!is_file && end.kind != ShownPath::Kind::directory) || !end.rest.empty() || end.links.size() >= links_at_most)
            return std::nullopt;
        if (!may_lead_to(end.path) || !std::all_of(end.links.begin(), end.links.end(), may_lead_to)) return std::nullopt;
        return target.front() == '/' ? way_from(path_components(split_last(path).first), path_components(end.path)) : target;
    } catch (const SystemFailure &) { // it cannot be looked at, and whoever follows the link reports that
        return std::nullopt;
    }
}

std::optional<std::string> small_text(const GuardedTree &tree, const std::string &base, const std::string &path)
{
    const ShownPath place = find_shown(tree, base, path);
    if (place.kind != ShownPath::Kind::other) return std::nullopt;
    const UniqueFd file = look_beneath(tree.top, place.path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!file) {
        require_nothing_there(tree, place.path);
        return std::nullopt;
    }
    const struct stat facts = examine(file, "examining " + escape_for_display(join_path(tree.path, place.path)));
    if (!S_ISREG(facts.st_mode) || facts.st_size > static_cast<off_t>(small_file_limit)) return std::nullopt;
    return read_whole(file, small_file_limit, path);
}

std::optional<std::string> shared_git_directory(const GuardedTree &tree, const std::string &repository)
{
    return Search(tree, 0).shared_directory(repository);
}

std::vector<std::string> repositories_above(const GuardedTree &tree, const std::string &below)
{
    std::vector<std::string> repositories;
    const auto look = [&](const std::string &path) {
        if (is_there(tree, join_path(path, ".git"))) repositories.push_back(path);
    };
    look("");
    for (std::size_t slash = below.find('/'); slash != std::string::npos; slash = below.find('/', slash + 1))
        look(below.substr(0, slash));
    if (!below.empty()) look(below);
    return repositories;
}

std::vector<GuardedPath> git_executing_paths(const GuardedTree &tree, const std::vector<std::string> &repositories, std::size_t most)
{
    return Search(tree, most).of_repositories(repositories);
}

std::vector<GuardedPath> gitdir_executing_paths(const GuardedTree &tree, std::size_t most)
{
    return Search(tree, most).of_gitdir();
}

std::optional<std::string> gitdir_in(const std::string &text)
{
    constexpr std::string_view begin = "gitdir:";
    if (text.compare(0, begin.size(), begin) != 0) return std::nullopt;
    std::string path(trimmed(std::string_view(text).substr(begin.size())));
    return path.empty() ? std::nullopt : std::optional(path);
}

} // namespace pi_agent

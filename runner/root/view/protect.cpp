// Mounts over protected and masked paths, and hides what a session does not see, by descriptor.
#include "runner/root/view/root_tree.hpp"

namespace pi_agent {

namespace {

// A clone without submounts would show what they cover, so each gets an empty read-only stand-in.
void cover(const AsRoot &root, const SessionDirectory &session, const DetachedMount &project, const std::string &path)
{
    const UniqueFd target = open_beneath(project.fd, path, O_PATH);
    if (S_ISDIR(examine(target, "examining a mount point in the project").st_mode)) {
        const std::vector<MountOption> options = {{"source", "pi-agent-hidden"}, {"mode", "0555"}, {"size", "4k"}, {"nr_inodes", "2"}};
        return attach(root, new_filesystem(root, "tmpfs", options, true), target);
    }
    const UniqueFd empty = open_or_throw("creating an empty stand-in", session.fd(), "empty", O_RDONLY | O_CREAT | O_NOFOLLOW, 0444);
    attach(root, clone_mount(root, empty, Submounts::leave_out, MountAttributes{true, nullptr}), target);
}

// Where a program of the user's serves the file system, root's look-ups would wait for it, beyond SIGKILL. A clone looks nothing up, and a
// mount that is no longer in the table was removed after that.
void refuse_fuse(const std::vector<MountEntry> &mounts, const ShownTree &tree)
{
    if (!defence_is_on("fuse-projects")) return;
    const auto *mount = mount_that_holds(mounts, tree.directory);
    if (mount == nullptr)
        throw Failure(FailureKind::changed_meanwhile, "the file system of " + escape_for_display(tree.path()) +
                                                          " was unmounted while the session was being prepared; try again");
    if (const auto problem = problem_of_file_system(tree.path(), mount->type)) throw Failure(ExitStatus::unavailable, *problem);
}

// The user may rename directories meanwhile. So the host's mount points and our stand-ins must be at the same places afterwards, or a
// stand-in is beside what it should hide. Both come from one reading of the table, and two readings must agree: a directory that changes
// places between two readings would pass with each.
void require_same_places(const std::vector<std::string> &covered, const ShownTree &tree, const std::string &shown_at)
{
    const std::string host_path = tree.path();
    for (int reading = 0; reading < 2; ++reading) {
        const std::vector<MountEntry> mounts = list_mounts();
        if (topmost_mounts_below(mounts, host_path) != covered || topmost_mounts_below(mounts, shown_at) != covered ||
            !is_at_its_path(tree))
            throw Failure(FailureKind::changed_meanwhile,
                          "mounts inside " + escape_for_display(host_path) + " changed while the session was being prepared; try again");
    }
}

constexpr int search_patience_seconds = mask_search_seconds + child_patience_seconds;
constexpr int placing_attempts = 5;
constexpr int removal_patience_seconds = 5; // with another session's placeholders
constexpr const char *masked_file = "masked-file";
constexpr const char *masked_directory = "masked-directory";

// Whether the error says that a path now leads to something else than what the search saw.
bool is_of_a_change(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV || error == EINVAL;
}

[[noreturn]] void tree_changed(const std::string &place, const std::string &path)
{
    throw Failure(FailureKind::changed_meanwhile, escape_for_display(path) + " in " + escape_for_display(place) +
                                                      " changed while the session was being prepared; try again");
}

// What was mounted in one tree, by its path there.
class Mounted {
public:
    Mounted(const AsRoot &root, std::string place, FdRef top) : root_(root), place_(std::move(place)), top_(top) {}

    // Mounts each path on itself, with what is mounted in it: the stand-ins that hide submounts. Mounts of an earlier attempt stay.
    void protect(const std::map<std::string, PointKind> &points)
    {
        for (const auto &[path, kind] : points) {
            const bool is_read_only = kind == PointKind::read_only;
            if (ids_.contains(path) || (is_read_only && !defence_is_on("protect"))) continue;
            const UniqueFd target = open_beneath(top_, path, O_PATH);
            put(clone_mount(root_, target, Submounts::take_along, MountAttributes{is_read_only, nullptr}), target, path);
        }
    }

    // Mounts something empty, with mode 0, over each path.
    void mask(const SessionDirectory &session, const std::vector<std::string> &paths)
    {
        if (paths.empty() || !defence_is_on("mask")) return;
        const UniqueFd file = session.make_file(masked_file);
        const UniqueFd directory = session.make_directory(masked_directory);
        if (fchmod(file.get(), 0) != 0 || fchmod(directory.get(), 0) != 0) throw_errno("making a stand-in for what is masked");
        for (const auto &path : paths) {
            const UniqueFd target = find_beneath(top_, path, O_PATH);
            if (!target) tree_changed(place_, path);
            const UniqueFd &standin = S_ISDIR(examine(target, "examining a path in the project").st_mode) ? directory : file;
            forget_below(path);
            put(clone_mount(root_, standin, Submounts::leave_out, MountAttributes{true, nullptr}), target, path);
        }
    }

    // The user, or a session in another repository of the root, may rename directories meanwhile. Among the host's mounts nobody can move a
    // mount point any more, so one look is enough.
    void require_in_place() const
    {
        for (const auto &[path, id] : ids_) {
            const UniqueFd fd = find_beneath(top_, path, O_PATH);
            if (!fd || mount_id(fd) != id) tree_changed(place_, path);
        }
    }

private:
    void put(const DetachedMount &mount, FdRef target, const std::string &path)
    {
        attach(root_, mount, target);
        ids_[path] = mount_id(mount.fd);
    }

    // Nobody sees these any more once something covers the directory.
    void forget_below(const std::string &path)
    {
        for (auto next = ids_.lower_bound(path + "/"); next != ids_.end() && next->first.compare(0, path.size() + 1, path + "/") == 0;)
            next = ids_.erase(next);
    }

    const AsRoot &root_;
    std::string place_;
    FdRef top_;
    std::map<std::string, std::uint64_t> ids_;
};

using Points = std::map<std::string, PointKind>;

// Mounts them in one tree, whose `top` is open in the mount table where they belong.
void protect_in_place(const AsRoot &root, const std::string &place, FdRef top, const Points &points)
{
    Mounted mounted(root, place, top);
    try {
        mounted.protect(points);
    } catch (const SystemFailure &failure) {
        if (!is_of_a_change(failure.error_number())) throw;
        tree_changed(place, failure.what());
    }
    mounted.require_in_place();
}

// Files that git replaces, by renaming, in everyday work outside: mounts among the host's hold them in place.
Points held_outside(const Points &points)
{
    Points held;
    for (const auto &[path, kind] : points) {
        const std::string name = split_last(path).second;
        if (kind == PointKind::read_only && (name == "config" || name == "config.worktree")) held.emplace(path, kind);
    }
    return held;
}

Points without(Points points, const Points &others)
{
    std::erase_if(points, [&](const auto &point) { return others.contains(point.first); });
    return points;
}

} // namespace

std::vector<std::string> cover_submounts(const AsRoot &root, const SessionDirectory &session, const DetachedMount &mount,
                                         const ShownTree &tree, const std::string &shown_at)
{
    const std::vector<MountEntry> mounts = list_mounts();
    refuse_fuse(mounts, tree);
    if (!defence_is_on("cover-submounts")) return {};
    const std::string host_path = tree.path();
    std::vector<std::string> covered = topmost_mounts_below(mounts, host_path);
    if (covered.size() > submount_limit && defence_is_on("submount-limit"))
        throw Failure(FailureKind::too_large,
                      "limit: " + std::to_string(covered.size()) + " file systems are mounted inside " + escape_for_display(host_path) +
                          ", and at most " + std::to_string(submount_limit) +
                          " can be hidden from the agent; unmount some, or ask the administrator for a smaller root");
    for (const auto &path : covered)
        cover(root, session, mount, path);
    require_same_places(covered, tree, shown_at);
    return covered;
}

std::vector<std::string> cover_closed(const AsRoot &root, const SessionDirectory &session, const DetachedMount &mount,
                                      const ShownTree &tree, const std::vector<AgentPlace> &closed, const std::vector<std::string> &covered)
{
    std::vector<std::string> paths;
    const std::string top = tree.path();
    if (!defence_is_on("closed-roots")) return paths;
    for (const auto &place : closed) {
        if (place.path == top || !is_within(place.path, top)) continue;
        const std::string path = place.path.substr(top.size() + 1);
        const auto hides = [&](const std::string &other) { return is_within(path, other); };
        if (std::any_of(covered.begin(), covered.end(), hides) || std::any_of(paths.begin(), paths.end(), hides)) continue;
        const UniqueFd found = find_beneath(mount.fd, path, O_PATH | O_DIRECTORY);
        struct stat facts {};
        if (found) facts = examine(found, "examining a root inside the project");
        if (!found || facts.st_dev != place.device || facts.st_ino != place.inode)
            throw Failure(FailureKind::changed_meanwhile,
                          escape_for_display(place.path) + " changed while the session was being prepared; try again");
        cover(root, session, mount, path);
        paths.push_back(path);
    }
    return paths;
}

ProjectGuards::ProjectGuards(const AsRoot &root, const Account &user, const OpenedProject &project, const ProjectsPolicy &policy)
    : user_(user.uid)
{
    const bool nothing =
        policy.protect && policy.protect->empty() && policy.mask.empty() && policy.shown() == ProjectScope::root && project.closed.empty();
    if (nothing) return;
    for (const auto &place : project.closed)
        closed_.push_back(place.path);
    std::vector<int> keep;
    for (const ShownTree *tree : project.trees()) {
        paths_.push_back(tree->path());
        keep.push_back(tree->directory.get());
    }
    const std::size_t trees_shown = keep.size();
    if (project.root_directory) keep.push_back(project.root_directory.get());
    child_.emplace(root, "finder of protected paths", user, keep, [&](const AsUser &self, FdRef channel) {
        GuardedTrees trees{{project.shown.directory, paths_.front()}, project.repository, project.below, {}};
        for (std::size_t index = 1; index < trees_shown; ++index)
            trees.git_directories.push_back({FdRef(keep[index]), paths_[index]});
        if (project.root_directory) trees.around = {{project.root_directory, project.shown.root_path}, project.shown.inside};
        serve_guarded_paths(self, trees, policy, channel);
    });
}

void ProjectGuards::wait_for_search(const std::function<void()> &meanwhile)
{
    if (!child_ || !found_.empty()) return;
    try {
        while (found_.size() < paths_.size())
            found_.push_back(decode_guarded_paths(child_->receive_long(search_patience_seconds, meanwhile)));
    } catch (const Failure &) { // its user can kill the child
        if (defence_is_on("finder-required")) throw;
        found_.resize(paths_.size());
    }
    for (const auto &found : found_)
        notices_.insert(notices_.end(), found.notices.begin(), found.notices.end());
    has_masks_ = !found_.front().masked.empty();
}

void ProjectGuards::apply(const AsRoot &root, const SessionDirectory &session, const ShownTree &tree, const DetachedMount &mount)
{
    if (!child_) return;
    wait_for_search({});
    const auto index = static_cast<std::size_t>(std::find(paths_.begin(), paths_.end(), tree.path()) - paths_.begin());
    if (index == paths_.size()) throw Failure(ExitStatus::internal, "a tree of the project was not searched for what is protected");
    const auto is_closed = [&](const std::string &path) {
        const std::string whole = path.empty() ? tree.path() : join_path(tree.path(), path);
        return defence_is_on("closed-roots") &&
               std::any_of(closed_.begin(), closed_.end(), [&](const std::string &closed) { return is_within(whole, closed); });
    };
    GuardedPaths &found = found_[index];
    for (auto *paths : {&found.read_only, &found.kept, &found.masked, &found.inner}) // below a stand-in there is nothing to guard
        std::erase_if(*paths, is_closed);
    record(session, tree, found.placeholders);
    // The end of another session removes no placeholder that is recorded here. A removal that looked for records before is over now.
    if (!found.placeholders.empty() && defence_is_on("placeholder-records") &&
        !lock_placeholders(user_, in_seconds(removal_patience_seconds)))
        throw Failure(FailureKind::busy, "another session of yours is ending and has been removing its placeholders for more than " +
                                             std::to_string(removal_patience_seconds) + " seconds; try again");
    // A directory above a masked path or a closed root could be renamed, and then neither would be there at the next start.
    std::vector<std::string> kept = found.kept;
    for (const auto &path : found.masked)
        kept.push_back(split_last(path).first);
    for (const auto &closed : closed_)
        if (closed.starts_with(tree.path() + "/")) kept.push_back(split_last(closed.substr(tree.path().size() + 1)).first);
    const std::set<std::string> inner(found.inner.begin(), found.inner.end());
    Mounted mounted(root, tree.path(), mount.fd);
    for (int attempt = 1;; ++attempt) {
        std::vector<std::string> targets = found.read_only;
        std::vector<std::string> made; // placeholders
        if (!found.placeholders.empty()) {
            send_packet(child_->channel(), order_for_tree(index), {}, in_seconds(child_patience_seconds));
            made = decode_paths(child_->receive_long(child_patience_seconds));
            std::erase_if(made, is_closed);
        }
        targets.insert(targets.end(), made.begin(), made.end());
        std::vector<std::string> own = targets;
        std::erase_if(own, [&](const std::string &path) { return inner.contains(path); });
        const Points points = plan_points(own, kept);
        try {
            mounted.protect(points);
            read_only_.insert(read_only_.end(), own.begin(), own.end());
            keep_for_later(tree, mount, without(plan_points(targets, kept, protect_limit), points));
            break;
        } catch (const SystemFailure &failure) {
            // The end of another session in the same repository may just have removed its placeholders, which were ours as well.
            if (failure.error_number() == ENOENT && !made.empty() && attempt < placing_attempts) continue;
            if (!is_of_a_change(failure.error_number())) throw;
            tree_changed(tree.path(), failure.what());
        }
    }
    mounted.mask(session, found.masked);
    mounted.require_in_place();
}

// Records them before they are made: whatever is killed then, somebody knows of them.
void ProjectGuards::record(const SessionDirectory &session, const ShownTree &tree, const std::vector<std::string> &placeholders)
{
    if (recorded_ + placeholders.size() > standin_limit && defence_is_on("placeholder-limit"))
        throw Failure(FailureKind::too_large, "limit: in " + escape_for_display(tree.path()) + " more than " +
                                                  std::to_string(standin_limit) +
                                                  " files and directories are missing that git would use (of submodules and worktrees); "
                                                  "remove submodules and worktrees that you do not need, or ask the administrator to list "
                                                  "the paths to protect (projects.protect)");
    for (const auto &path : placeholders)
        session.make_link(placeholders_directory + ("/" + std::to_string(recorded_++)), tree.path() + "/" + path);
}

void ProjectGuards::keep_for_later(const ShownTree &tree, const DetachedMount &mount, Points points)
{
    if (points.empty() || !defence_is_on("protect-inner")) return;
    if (held_outside(points).size() > guard_limit)
        throw Failure(FailureKind::too_large, "limit: " + escape_for_display(tree.path()) + " has more than " +
                                                  std::to_string(guard_limit) +
                                                  " submodules, the most whose settings can be protected; remove some that you do not "
                                                  "need, or ask the administrator to list the paths to protect (projects.protect)");
    UniqueFd top = duplicate(mount.fd);
    if (!top) throw_errno("keeping a tree of the project");
    inner_.push_back({&tree, std::move(top), std::move(points)});
}

void ProjectGuards::apply_inside(const AsRoot &root, FdRef mount_namespace, const std::string &project_path)
{
    // First mount what keeps the user from uncovering it inside, then what keeps the agent from it.
    for (const auto &[tree, top, points] : inner_)
        if (defence_is_on("protect-inner-held")) protect_in_place(root, tree->path(), top, held_outside(points));
    with_mounts_of(root, mount_namespace, [&] {
        const UniqueFd view = open_or_throw("opening the session's view", "/", O_PATH | O_DIRECTORY);
        for (const auto &[tree, on_host, points] : inner_) {
            const std::string place = tree->path() == paths_.front() ? project_path : tree->path();
            const UniqueFd top = find_beneath(view, place.substr(1), O_PATH | O_DIRECTORY);
            const std::string doing = "examining a tree of the session's view";
            if (!top || !is_same_file(examine(top, doing), examine(on_host, doing))) tree_changed(place, "its top");
            protect_in_place(root, place, top, points);
        }
    });
    inner_.clear();
}

std::vector<std::string> ProjectGuards::waiting_outside() const
{
    if (repository_config() != RepositoryConfig::protected_) return {};
    return {"until this session ends, git commands that write .git/config (git config, remote, push -u) are refused outside too: \"Device "
            "or resource busy\" (told once for each repository; pi-agentctl why .git/config says it at any time)"};
}

RepositoryConfig ProjectGuards::repository_config() const
{
    const auto is_config = [](const std::string &path) { return split_last(path).second == "config"; };
    return std::any_of(read_only_.begin(), read_only_.end(), is_config) ? RepositoryConfig::protected_ : RepositoryConfig::writable;
}

} // namespace pi_agent

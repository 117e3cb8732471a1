// Mounting over protected and masked paths, by descriptor, beneath the id-mapped clone of the project.
#include "runner/protect.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "runner/beneath.hpp"
#include "runner/limits.hpp"
#include "runner/placeholder_removal.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

constexpr int search_patience_seconds = mask_search_seconds + child_patience_seconds;
constexpr int attempts = 5;
constexpr const char *masked_file = "masked-file";
constexpr const char *masked_directory = "masked-directory";

std::uint64_t mount_of(FdRef fd)
{
    struct statx facts {};
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &facts) != 0) throw_errno("examining a mount in the project");
    return facts.stx_mnt_id;
}

bool is_directory(FdRef fd)
{
    struct stat facts {};
    if (fstat(fd.get(), &facts) != 0) throw_errno("examining a path in the project");
    return S_ISDIR(facts.st_mode);
}

// Something else lies at a path than the search has seen.
bool is_of_a_change(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV || error == EINVAL;
}

[[noreturn]] void project_changed(const std::string &root_path, const std::string &path)
{
    throw Failure(ExitStatus::system_failure,
                  escape_for_display(path) + " in " + root_path + " changed while the session was being prepared; try again");
}

} // namespace

std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only)
{
    std::map<std::string, PointKind> points;
    for (const auto &path : read_only) {
        for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
            if (defence_is_on("protect-prefixes")) points.emplace(path.substr(0, slash), PointKind::prefix);
        points[path] = PointKind::read_only;
    }
    // What lies beneath a path comes after it, but not at once: "a", "a-b", "a/b".
    for (const auto &path : read_only)
        for (auto next = points.lower_bound(path + "/"); next != points.end() && next->first.compare(0, path.size() + 1, path + "/") == 0;)
            next = points.erase(next);
    if (points.size() > guard_limit)
        throw Failure(ExitStatus::limit, "limit: what is protected in the project needs " + std::to_string(points.size()) +
                                             " mounts, and at most " + std::to_string(guard_limit) +
                                             " are made; remove worktrees and submodules that are not needed, or ask the administrator to "
                                             "protect less (projects.protect)");
    return points;
}

ProjectGuards::ProjectGuards(const AsRoot &root, const Account &user, const OpenedProject &project, const ProjectsPolicy &policy)
    : root_path_(project.root_path)
{
    const bool nothing = policy.protect && policy.protect->empty() && policy.mask.empty();
    if (nothing) return;
    child_.emplace(root, "finder of protected paths", user, std::vector<int>{project.root.get()}, [&](const AsUser &self, FdRef channel) {
        serve_guarded_paths(self, {project.root, project.root_path}, project.below, policy, channel);
    });
}

std::vector<std::string> ProjectGuards::make_placeholders()
{
    if (found_.placeholders.empty()) return {};
    send_packet(child_->channel(), "M", {}, in_seconds(child_patience_seconds));
    return decode_paths(child_->receive_long(child_patience_seconds));
}

void ProjectGuards::apply(const AsRoot &root, const SessionDirectory &session, const DetachedMount &project)
{
    if (!child_) return;
    found_ = decode_guarded_paths(child_->receive_long(search_patience_seconds));
    // Before they are made: whatever is killed then, somebody knows of them.
    for (std::size_t index = 0; index < found_.placeholders.size(); ++index)
        session.make_link(placeholders_directory + ("/" + std::to_string(index)), root_path_ + "/" + found_.placeholders[index]);
    for (int attempt = 1;; ++attempt) {
        std::vector<std::string> targets = found_.read_only;
        const std::vector<std::string> made = make_placeholders();
        targets.insert(targets.end(), made.begin(), made.end());
        try {
            mount_points(root, project, targets);
            found_.read_only = std::move(targets);
            break;
        } catch (const SystemFailure &failure) {
            // The end of another session in the same repository may just have removed its placeholders, which were ours as well.
            if (failure.error_number() == ENOENT && !made.empty() && attempt < attempts) continue;
            if (!is_of_a_change(failure.error_number())) throw;
            project_changed(root_path_, failure.what());
        }
    }
    child_.reset();
    mount_masks(root, session, project);
    require_in_place(project);
}

RepositoryConfig ProjectGuards::repository_config() const
{
    const auto is_config = [](const std::string &path) { return split_last(path).second == "config"; };
    const bool found = std::any_of(found_.read_only.begin(), found_.read_only.end(), is_config);
    return found ? RepositoryConfig::protected_ : RepositoryConfig::writable;
}

void ProjectGuards::put(const AsRoot &root, const DetachedMount &mount, FdRef target, const std::string &path)
{
    attach(root, mount, target);
    mounted_[path] = mount_of(mount.fd);
}

void ProjectGuards::mount_points(const AsRoot &root, const DetachedMount &project, const std::vector<std::string> &targets)
{
    for (const auto &[path, kind] : plan_points(targets)) {
        const bool read_only = kind == PointKind::read_only;
        if (mounted_.count(path) != 0 || (read_only && !defence_is_on("protect"))) continue;
        const UniqueFd target = open_beneath(project.fd, path, O_PATH);
        // With what is mounted in it: the stand-ins that hide submounts.
        put(root, clone_mount(root, target, Submounts::take_along, MountAttributes{read_only, nullptr}), target, path);
    }
}

void ProjectGuards::mount_masks(const AsRoot &root, const SessionDirectory &session, const DetachedMount &project)
{
    if (found_.masked.empty() || !defence_is_on("mask")) return;
    const UniqueFd file = session.make_file(masked_file);
    const UniqueFd directory = session.make_directory(masked_directory);
    if (fchmod(file.get(), 0) != 0 || fchmod(directory.get(), 0) != 0) throw_errno("making a stand-in for what is masked");
    for (const auto &path : found_.masked) {
        const UniqueFd target = find_beneath(project.fd, path, O_PATH);
        if (!target) project_changed(root_path_, path);
        const UniqueFd &standin = is_directory(target) ? directory : file;
        put(root, clone_mount(root, standin, Submounts::leave_out, MountAttributes{true, nullptr}), target, path);
        const std::string below = path + "/"; // what is mounted there is seen no more
        for (auto next = mounted_.lower_bound(below); next != mounted_.end() && next->first.compare(0, below.size(), below) == 0;)
            next = mounted_.erase(next);
    }
}

// The user, or a session in another repository of the root, may rename directories meanwhile. What is mounted now can be moved no more by
// anybody among the host's mounts, so one look is enough.
void ProjectGuards::require_in_place(const DetachedMount &project) const
{
    for (const auto &[path, id] : mounted_) {
        const UniqueFd fd = find_beneath(project.fd, path, O_PATH);
        if (!fd || mount_of(fd) != id) project_changed(root_path_, path);
    }
}

} // namespace pi_agent

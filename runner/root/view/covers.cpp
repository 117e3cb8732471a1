// Hides in a project what its session does not see: what is mounted there, and roots with rules of their own.
#include "runner/root/view/root_tree.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/limits.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

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
        throw Failure(FailureKind::file_system, "the file system of " + escape_for_display(tree.path()) +
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
            throw Failure(ExitStatus::system_failure,
                          "mounts inside " + escape_for_display(host_path) + " changed while the session was being prepared; try again");
    }
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

} // namespace pi_agent

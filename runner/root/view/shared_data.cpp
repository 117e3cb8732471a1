// Finds a place for data that others keep and a policy shows (`readable` of a user), and the groups by which its user reads it.
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/view/root_tree.hpp"

namespace pi_agent {

// Data of others: where it really is, by root's own look. A mount point for it is in the session's own directory: never in a tree of
// the host's that is mounted there already.
bool HomeMounts::has_place_beside(HomeDirectory &directory, const HostView &view)
{
    if (!directory.problem.empty()) return true; // can_be_shown() tells it
    if (std::string path = kernel_path(directory.directory); path.starts_with('/')) directory.path = std::move(path);
    const auto covers = [&](const std::string &other) { return are_nested(other, directory.path); };
    if (problem_of_shared_data(directory.path) || covers(home_.path) || covers(policy_.agent.state_dir) ||
        std::any_of(tree_.shown_roots.begin(), tree_.shown_roots.end(), covers) ||
        std::any_of(view.trees.begin(), view.trees.end(), [&](const auto &tree) { return is_within(tree, directory.path); })) {
        leave_out(directory, "it holds something else that sessions are shown, or is in it");
        return false;
    }
    if (is_shown(view, directory.path)) return false; // with all of the tree around it
    session_.make_directory("root" + directory.path);
    return true;
}

std::vector<Gid> HomeMounts::groups(const Account &user) const
{
    std::vector<Gid> groups;
    for (const auto *directory : directories_) {
        if (!directory->is_shared()) continue;
        const struct stat facts = examine(directory->directory, "examining " + directory->path);
        const gid_t group = facts.st_gid; // the owner's choice, and the session has it everywhere: so only where it opens what is closed
        const bool is_users = std::find(user.groups.begin(), user.groups.end(), group) != user.groups.end();
        const bool is_open = (facts.st_mode & S_IROTH) != 0 && (facts.st_mode & S_IXOTH) != 0;
        if (is_users && !is_open && group != user.gid.value() && !is_privileged_group(Gid(group))) groups.emplace_back(group);
    }
    return groups;
}

} // namespace pi_agent

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

// Where a link of root's leads to the home, such as /home -> /data/home, programs have written down either name. The second one holds links
// alone, whose texts come from the user database and from what is shown: nothing is followed for them.
void HomeMounts::make_second_name(const HostView &view, const std::string &named)
{
    const auto is_near = [&](const std::string &path) { return are_nested(path, named); };
    if (home_.path.empty() || policy_.projects.paths == ProjectPaths::alias || is_near(home_.path) || is_near(policy_.agent.state_dir) ||
        problem_of_root_in_unit(named) || problem_of_place(named) || is_shown(view, named) ||
        std::any_of(tree_.shown_roots.begin(), tree_.shown_roots.end(), is_near) ||
        std::any_of(view.trees.begin(), view.trees.end(), is_near))
        return;
    constexpr const char *second_name = "home-by-name";
    std::set<std::string> names;
    const auto add = [&](const std::string &path) {
        if (path == home_.path || !is_within(path, home_.path)) return;
        const std::string below = path.substr(home_.path.size() + 1);
        names.insert(below.substr(0, below.find('/')));
        shown_.places.emplace_back(join_path(named, below), path);
    };
    std::for_each(tree_.shown_roots.begin(), tree_.shown_roots.end(), add);
    for (const auto &path : own_places_)
        add(join_path(home_.path, path));
    for (const auto &link : home_.links)
        add(join_path(home_.path, link.first));
    if (names.empty()) return;
    for (const auto &name : names)
        session_.make_link(std::string(second_name) + "/" + name, join_path(home_.path, name));
    make_frame(root_, session_, second_name, {});
    tree_.binds.push_back(Bind{session_.path() + "/" + second_name, named, false});
}

} // namespace pi_agent

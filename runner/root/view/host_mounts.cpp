// Shows the host's directories to a session.
#include "runner/root/view/root_tree.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <utility>

namespace pi_agent {

namespace {

DetachedMount clone_read_only(const AsRoot &root, FdRef source)
{
    return clone_mount(root, source, Submounts::take_along, MountAttributes{true, nullptr});
}

void show_read_only(const AsRoot &root, const SessionDirectory &session, const std::string &host_path, const std::string &at)
{
    const UniqueFd source = open_trusted(host_path, O_PATH, "host's");
    const bool is_directory = S_ISDIR(examine(source, "examining " + host_path).st_mode);
    if (!is_directory) session.make_directory(split_last(at).first);
    const UniqueFd target = is_directory ? session.make_directory(at) : session.make_file(at);
    attach(root, clone_read_only(root, source), target);
}

// Adds the symlinks among the host's trees to `links`.
void show_program_trees(const AsRoot &root, const SessionDirectory &session, std::map<std::string, std::string> &links)
{
    for (const std::string_view name : program_trees) {
        const std::string tree(name);
        struct stat facts {};
        if (lstat(tree.c_str(), &facts) != 0) continue; // this host does not have it
        if (S_ISLNK(facts.st_mode)) {
            const ResolvedPath end = resolve_trusted(tree, "host's");
            links.insert(end.links.begin(), end.links.end());
        } else {
            show_read_only(root, session, tree, "root" + tree);
        }
    }
}

// A host can do without each of these, so none keeps a session from starting.
void show_package_data(const AsRoot &root, const SessionDirectory &session)
{
    for (const std::string_view name : package_data) {
        const std::string tree(name);
        if (!path_exists(tree)) continue;
        try {
            show_read_only(root, session, tree, "root" + tree);
        } catch (const Failure &failure) {
            if (failure.kind() != FailureKind::untrusted) throw; // others than root can change it
        }
    }
}

// In the session's directory, where the future /run is beside the root (root_tree.cpp).
std::string place_of_link(const std::string &path)
{
    return is_within(path, "/run") ? path.substr(1) : "root" + path;
}

// `directory`: /etc, or one in it that leads to what is shown.
void show_part_of_etc(const AsRoot &root, const SessionDirectory &session, const std::string &directory, std::vector<LateMount> &late)
{
    constexpr std::size_t below = std::string_view("/etc/").size();
    session.make_directory("root" + directory);
    for (const auto &name : names_in(open_trusted(directory, O_RDONLY | O_DIRECTORY, "host's"))) {
        struct stat facts {};
        const std::string path = join_path(directory, name);
        const ShownOfEtc shown = shown_of_etc(path.substr(below));
        if (shown == ShownOfEtc::nothing || stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) continue; // or a symlink to nothing
        if (shown == ShownOfEtc::way) {
            show_part_of_etc(root, session, path, late);
            continue;
        }
        if (has_test_seams && name == "pi-agent") { // common/seams/seams.cpp: the launcher asks there before anything comes late
            show_read_only(root, session, path, "root" + path);
            continue;
        }
        session.make_directory("root" + path);
        late.push_back({clone_read_only(root, open_trusted(path, O_PATH | O_DIRECTORY, "host's")), path});
    }
}

// apt reads what dpkg knows without these files, too, but complains. The host's files can hold passwords of sources and proxies.
void stand_in_for_apt(const SessionDirectory &session, const HostView &view)
{
    const auto is_of_apt = [](const std::string &path) { return is_within(path, "/etc/apt"); };
    const bool is_shown_besides =
        std::any_of(view.trees.begin(), view.trees.end(), is_of_apt) ||
        std::any_of(view.links.begin(), view.links.end(), [&](const auto &link) { return is_of_apt(link.first); });
    struct stat facts {};
    if (is_shown_besides || lstat("/etc/apt", &facts) != 0) return; // view_paths; or a host without apt
    for (const char *directory : {"apt.conf.d", "preferences.d", "sources.list.d"})
        session.make_directory(std::string("root/etc/apt/") + directory);
    const UniqueFd list = session.make_file("root/etc/apt/sources.list"); // empty
}

// The host's sudo could only fail inside (no new privileges), and some scripts call it by its path.
void explain_sudo(const AsRoot &root, std::vector<LateMount> &late)
{
    struct stat facts {};
    if (stat(build::sudo_path, &facts) != 0) return; // an administrator who uses another one may leave this path empty
    const std::string path = resolve_trusted(build::sudo_path, "host's sudo").canonical;
    if (is_shown(HostView{}, path))
        late.push_back(
            {clone_read_only(root, open_trusted(std::string(build::shim_directory) + "/sudo", O_PATH, "explanation of sudo")), path});
}

} // namespace

std::vector<LateMount> show_host(const AsRoot &root, const SessionDirectory &session, const HostView &view)
{
    std::vector<LateMount> late;
    std::map<std::string, std::string> links = view.links;
    show_program_trees(root, session, links);
    show_package_data(root, session);
    if (view.view == View::host)
        show_read_only(root, session, "/etc", "root/etc");
    else // late: the unit needs nothing in there, and nothing else is ever mounted there
        show_part_of_etc(root, session, "/etc", late);
    if (view.view == View::minimal) stand_in_for_apt(session, view);
    const std::string devices = "/sys/devices/system"; // processors and memory: tools choose their size by them
    session.make_directory(devices.substr(1));
    late.push_back({clone_read_only(root, open_trusted(devices, O_PATH | O_DIRECTORY, "host directory")), devices});
    explain_sudo(root, late);
    for (auto &file : protect_kernel_files(root))
        late.push_back(std::move(file));
    for (const auto &tree : view.trees)
        show_read_only(root, session, tree, "root" + tree);
    // Each once, and none inside what is shown: a symlink of a merged /usr can lead through one in /usr.
    for (const auto &link : links)
        if (std::none_of(program_trees.begin(), program_trees.end(),
                         [&](std::string_view tree) { return link.first != tree && is_within(link.first, tree); }))
            session.make_link(place_of_link(link.first), link.second);
    return late;
}

} // namespace pi_agent

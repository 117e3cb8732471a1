// Mounts of what a session sees of the host.
#include "runner/root/view/host_mounts.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/view/kernel_files.hpp"

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
    struct stat facts {};
    if (fstat(source.get(), &facts) != 0) throw_errno("examining " + host_path);
    UniqueFd target;
    if (S_ISDIR(facts.st_mode)) {
        target = session.make_directory(at);
    } else {
        session.make_directory(split_last(at).first);
        target = session.make_file(at);
    }
    attach(root, clone_read_only(root, source), target);
}

// Adds the links that the host has in their place to `links`.
void show_program_trees(const AsRoot &root, const SessionDirectory &session, std::map<std::string, std::string> &links)
{
    for (const std::string_view name : program_trees) {
        const std::string tree(name);
        struct stat facts {};
        if (lstat(tree.c_str(), &facts) != 0) continue; // this host has none
        if (S_ISLNK(facts.st_mode)) {
            const ResolvedPath end = resolve_trusted(tree, "host's");
            links.insert(end.links.begin(), end.links.end());
        } else {
            show_read_only(root, session, tree, "root" + tree);
        }
    }
}

// In the session's directory, where what is to be /run lies beside the root (root_tree.cpp).
std::string place_of_link(const std::string &path)
{
    return is_within(path, "/run") ? path.substr(1) : "root" + path;
}

// Late: nothing that the unit needs is in there, and nothing else is ever mounted there.
std::vector<LateMount> show_part_of_etc(const AsRoot &root, const SessionDirectory &session)
{
    std::vector<LateMount> late;
    session.make_directory("root/etc");
    for (const auto &name : names_in(open_trusted("/etc", O_RDONLY | O_DIRECTORY, "host's"))) {
        struct stat facts {};
        const std::string path = "/etc/" + name;
        if (!is_shown_in_etc(name) || stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) continue; // or a link that leads nowhere
        if (has_test_seams && name == "pi-agent") { // common/seams/defence.cpp: the launcher asks there before anything comes late
            show_read_only(root, session, path, "root" + path);
            continue;
        }
        session.make_directory("root" + path);
        late.push_back({clone_read_only(root, open_trusted(path, O_PATH | O_DIRECTORY, "host's")), path});
    }
    return late;
}

// Processors and memory: what tools size themselves by.
LateMount show_devices(const AsRoot &root, const SessionDirectory &session)
{
    const std::string path = "/sys/devices/system";
    session.make_directory(path.substr(1));
    return {clone_read_only(root, open_trusted(path, O_PATH | O_DIRECTORY, "host directory")), path};
}

// The host's sudo could only fail inside (no new privileges), and some scripts call it by its path.
void explain_sudo(const AsRoot &root, std::vector<LateMount> &late)
{
    struct stat facts {};
    if (stat(build::sudo_path, &facts) != 0) return; // who brings another one may leave this path empty
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
    if (view.view == View::host) {
        show_read_only(root, session, "/etc", "root/etc");
    } else {
        late = show_part_of_etc(root, session);
    }
    late.push_back(show_devices(root, session));
    explain_sudo(root, late);
    for (auto &file : protect_kernel_files(root))
        late.push_back(std::move(file));
    for (const auto &tree : view.trees)
        show_read_only(root, session, tree, "root" + tree);
    // Once each, and none that lies inside what is shown: a link of a merged /usr can lead through one in /usr.
    for (const auto &link : links)
        if (std::none_of(program_trees.begin(), program_trees.end(),
                         [&](std::string_view tree) { return link.first != tree && is_within(link.first, tree); }))
            session.make_link(place_of_link(link.first), link.second);
    return late;
}

} // namespace pi_agent

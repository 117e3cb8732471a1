// Builds the session's root tree out of read-only clones, the agent's home, the id-mapped project, and files of its own.
#include "runner/root/view/root_tree.hpp"

#include <sys/ioctl.h>

namespace pi_agent {

namespace {

// Empty: mount points of the unit's own file systems, and places that are hidden.
constexpr std::array empty_directories = {
    "root/proc", "root/sys", "root/dev", "root/run",   "root/tmp", "root/var/tmp",         "root/home",
    "root/root", "root/srv", "root/mnt", "root/media", "run/user", "run/systemd/incoming", "sys/fs/cgroup",
    "home"};

// What ProtectHome= hides.
constexpr std::array homes = {"/home", "/root", "/run/user"};

// Without a map, files keep the owners that they have, and the agent the access of its own account.
DetachedMount clone_project(const AsRoot &root, const ShownTree &tree, const UniqueFd *map, bool read_only)
{
    try {
        return clone_mount(root, tree.directory, Submounts::leave_out,
                           MountAttributes{read_only && defence_is_on("read-only-projects"), map});
    } catch (const SystemFailure &failure) {
        if (map == nullptr) throw;
        const std::string of_what = "the file system of " + escape_for_display(tree.path()) + name_mount(list_mounts(), tree.directory);
        if (failure.error_number() == EPERM)
            throw Failure(FailureKind::file_system,
                          of_what + " is id-mapped already and cannot be mapped again; move the project to another file system");
        if (failure.error_number() != EINVAL) throw;
        throw Failure(FailureKind::file_system, problem_of_mapping(tree.path(), name_mount(list_mounts(), tree.directory)));
    }
}

// Shows the project's trees at their places below allowed roots. Each root's trees are in a frame of its own, or without one where the tree
// is the root. `show`: mounts one tree on `target`, which is at `path`.
std::vector<Frame> show_at_host_paths(const AsRoot &root, const SessionDirectory &session, const OpenedProject &project,
                                      const std::function<void(const ShownTree &tree, FdRef target, const std::string &path)> &show)
{
    std::map<std::string, std::vector<const ShownTree *>> by_root;
    for (const ShownTree *tree : project.trees())
        by_root[tree->root_path].push_back(tree);
    std::vector<Frame> frames;
    for (const auto &[root_path, trees] : by_root) {
        const Frame frame{"project" + (frames.empty() ? "" : std::to_string(frames.size())), root_path};
        const std::string path = session.path() + "/" + frame.name;
        const bool whole = trees.front()->inside.empty();
        std::vector<std::string> places; // of an allowed root that is not shown completely
        for (const ShownTree *tree : trees)
            places.push_back(tree->inside);
        const UniqueFd top = whole ? UniqueFd() : make_frame(root, session, frame.name, places);
        for (const ShownTree *tree : trees)
            if (whole)
                show(*tree, session.make_directory(frame.name), path);
            else
                show(*tree, open_beneath(top, tree->inside, O_PATH | O_DIRECTORY), path + "/" + tree->inside);
        frames.push_back(frame);
    }
    return frames;
}

// Makes the project's own path lead to it, where no home is in the way.
void link_host_path(const SessionDirectory &session, const HostView &view, const OpenedProject &project, const std::string &place)
{
    const std::string path = project.shown.path();
    const bool hidden = std::any_of(homes.begin(), homes.end(), [&](const char *home) { return is_within(path, home); });
    const bool holds_shown =
        std::any_of(view.trees.begin(), view.trees.end(), [&](const std::string &tree) { return is_within(tree, path); });
    if (!hidden && !holds_shown && !is_shown(view, path)) session.make_link("root" + path, place);
}

// The session's terminals: an instance of its own, because the host's has everybody's terminals (design rule 5). Returns where to open a
// new one.
UniqueFd make_terminals(const AsRoot &root, std::vector<LateMount> &late)
{
    if (!defence_is_on("own-devpts")) {
        UniqueFd host = open_trusted("/dev/pts", O_PATH | O_DIRECTORY, "host's terminals");
        late.push_back({clone_mount(root, host, Submounts::leave_out, MountAttributes{}), "/dev/pts"});
        return host;
    }
    DetachedMount own = new_filesystem(root, "devpts", {{"ptmxmode", "0666"}, {"mode", "0600"}, {"max", "64"}}, false);
    UniqueFd top = duplicate(own.fd);
    if (!top) throw_errno("keeping the session's terminals");
    late.push_back({std::move(own), "/dev/pts"});
    return top;
}

// Puts these files on those of the agent's directory, read-only; no descriptor: not this one. Every directory above becomes a mount point:
// otherwise it could be renamed and replaced.
void lock_files(const AsRoot &root, const DetachedMount &home, const std::map<std::string, const UniqueFd &> &files)
{
    std::string path;
    for (const char *name : {".pi", "agent"}) {
        path += (path.empty() ? "" : "/") + std::string(name);
        const UniqueFd directory = open_beneath(home.fd, path, O_PATH | O_DIRECTORY);
        if (defence_is_on("locked-directories"))
            attach(root, clone_mount(root, directory, Submounts::leave_out, MountAttributes{}), directory);
    }
    for (const auto &[name, locked] : files) {
        if (!locked) continue;
        const UniqueFd target = open_beneath(home.fd, path + "/" + name, O_PATH);
        if (!S_ISREG(examine(target, "examining the agent's " + name).st_mode))
            throw Failure(FailureKind::changed_meanwhile,
                          "the agent's " + name + " changed while the session was being prepared; try again");
        if (defence_is_on("settings-lock"))
            attach(root, clone_mount(root, locked, Submounts::leave_out, MountAttributes{true, nullptr}), target);
    }
}

} // namespace

void show_box_notes(const SessionDirectory &session, const BoxFacts &facts)
{
    write_whole(session.make_late_file("root/AGENTS.md"), box_notes(facts), "the notes about the sandbox");
}

void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, const std::vector<Gid> &further)
{
    if (view.view == View::host) return;
    std::vector<Account> accounts;
    std::vector<std::pair<std::string, Gid>> groups;
    const auto add_group = [&](Gid gid) { groups.emplace_back(group_name(gid).value_or(""), gid); };
    const auto add = [&](const Account &account) {
        accounts.push_back(account);
        add_group(account.gid);
    };
    for (const char *name : {"root", "nobody"})
        if (const auto account = find_account(std::string(name))) add(*account);
    add(agent);
    add(user);
    for (const gid_t group : agent.groups)
        add_group(Gid(group));
    std::for_each(further.begin(), further.end(), add_group);
    const auto write = [&](const std::string &path, const std::string &text) {
        if (!is_shown(view, path) && !view.links.contains(path))
            write_whole(session.make_file("root" + path), text, "the session's " + path);
    };
    write("/etc/passwd", passwd_text(accounts, agent.name, agent_home));
    write("/etc/group", group_text(groups));
}

UniqueFd make_frame(const AsRoot &root, const SessionDirectory &session, const std::string &name, const std::vector<std::string> &places)
{
    for (const auto &place : places)
        session.make_directory(name + "/" + place);
    const UniqueFd directory = session.make_directory(name);
    DetachedMount frame = clone_mount(root, directory, Submounts::leave_out, MountAttributes{true, nullptr});
    attach(root, frame, directory);
    return std::move(frame.fd);
}

UniqueFd give_terminal(const AsRoot & /*root*/, FdRef devpts, const Account &agent, const Request &request, FdRef wrapper)
{
    constexpr int terminal_patience_seconds = 5;
    if (!has_any(request.on_terminal)) return UniqueFd();
    const UniqueFd master = open_or_throw("opening the session's terminal", devpts, "ptmx", O_RDWR | O_NOCTTY);
    const int unlocked = 0;
    if (ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) throw_errno("unlocking the session's terminal");
    // Opens it by descriptor, not by name (ioctl_tty(2), TIOCGPTPEER).
    UniqueFd slave = UniqueFd::adopt(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave) throw_errno("opening the agent's end of the session's terminal");
    if (fchown(slave.get(), agent.uid.value(), agent.gid.value()) != 0) throw_errno("giving the session's terminal to the agent");
    const winsize size{request.window.rows, request.window.columns, request.window.x_pixels, request.window.y_pixels};
    if (ioctl(master.get(), TIOCSWINSZ, &size) != 0) throw_errno("setting the session's window size");
    send_packet(wrapper, encode(RunnerMessage(TerminalOpened{})), {master.get()}, in_seconds(terminal_patience_seconds));
    return slave;
}

std::string place_of_project(const ShownTree &shown, ProjectPaths paths, const std::string &home_path)
{
    return paths == ProjectPaths::host ? shown.path() : home_path + "/" + alias_directory + "/" + alias_of(shown.path());
}

std::vector<Bind> tree_binds(const std::string &session_path, const std::string &home_path, const std::vector<Frame> &frames,
                             bool read_only)
{
    std::vector<Bind> binds = {Bind{session_path + "/home", home_path, false}, Bind{session_path + "/run", "/run", true},
                               Bind{session_path + "/sys", "/sys", true}};
    for (const auto &frame : frames)
        binds.push_back(Bind{session_path + "/" + frame.name, frame.root_path, read_only && defence_is_on("read-only-projects")});
    if (defence_is_on("own-tmp"))
        for (const auto &[name, path] : {std::pair("tmp", "/tmp"), std::pair("var-tmp", "/var/tmp")})
            binds.push_back(Bind{session_path + "/scratch/" + name, path, false});
    return binds;
}

std::string problem_of_mapping(const std::string &path, const std::string &mount_name)
{
    return "the file system of " + escape_for_display(path) + mount_name +
           " does not support id-mapped mounts on this kernel, so the agent's files could not be made yours; move the project to ext4, xfs "
           "or btrfs, or use a newer kernel; the administrator can also do without, by 'projects: {ownership: none}'";
}

std::optional<std::string> problem_of_file_system(const std::string &path, const std::string &type)
{
    if (type.compare(0, 4, "fuse") != 0) return std::nullopt;
    return "a program answers for the file system of " + escape_for_display(path) + " (" + escape_for_display(type) +
           "), and root does not wait for that; move the project to another mount";
}

RootTree build_root_tree(const AsRoot &root, const SessionDirectory &session, const HostView &view, const OpenedProject &project,
                         const ProjectsPolicy &projects, const StateDirectory &state, const Account &user, const Account &agent,
                         const UniqueFd &locked_settings, const UniqueFd &locked_mcp, ProjectGuards &guards)
{
    RootTree tree;
    const ProjectPaths paths = projects.paths;
    tree.path = session.path() + "/root";
    tree.project_path = place_of_project(project.shown, paths, state.home_path);
    // Every mount point first: once clones are attached, we create nothing any more.
    for (const char *path : empty_directories)
        session.make_directory(path);
    if (paths == ProjectPaths::alias) link_host_path(session, view, project, tree.project_path);

    tree.late = show_host(root, session, view);
    const DetachedMount home = clone_mount(root, state.home, Submounts::leave_out, MountAttributes{});
    attach(root, home, session.make_directory("home"));
    if (locked_settings || locked_mcp) lock_files(root, home, {{"settings.json", locked_settings}, {"mcp.json", locked_mcp}});
    tree.devpts = make_terminals(root, tree.late);
    if (!defence_is_on("late-mounts")) tree.late.clear(); // a session with late mounts must find its own mount table

    tree.id_map = make_id_map(root, user, agent); // toolchains need it, whatever the ownership
    const bool maps = projects.ownership == ProjectOwnership::idmap || !defence_is_on("unmapped-projects");
    const auto show = [&](const ShownTree &one, FdRef target, const std::string &path) {
        const DetachedMount mount = clone_project(root, one, maps ? &tree.id_map : nullptr, projects.read_only);
        attach(root, mount, target);
        std::vector<std::string> covered = cover_submounts(root, session, mount, one, path);
        std::vector<std::string> closed = cover_closed(root, session, mount, one, project.closed, covered);
        guards.apply(root, session, one, mount); // after everything that hides: the mounts take it along
        if (&one != &project.shown) return;
        tree.covered = std::move(covered);
        tree.closed = std::move(closed);
    };
    std::vector<Frame> frames;
    if (paths == ProjectPaths::host) {
        frames = show_at_host_paths(root, session, project, show);
    } else { // in the agent's home, on an existing directory; nothing is mounted where the agent exchanged it meanwhile
        const std::string inside = std::string(alias_directory) + "/" + alias_of(project.shown.path());
        show(project.shown, open_beneath(home.fd, inside, O_PATH | O_DIRECTORY), session.path() + "/home/" + inside);
    }
    for (const auto &frame : frames) {
        tree.shown_roots.push_back(frame.root_path);
        tree.project_points.push_back(session.path() + "/" + frame.name);
    }
    if (frames.empty()) tree.project_points.push_back(session.path() + "/home");
    if (!projects.read_only || !defence_is_on("read-only-projects")) tree.writable_roots = tree.shown_roots;
    tree.binds = tree_binds(session.path(), state.home_path, frames, projects.read_only);
    fault_point("tree-built");
    return tree;
}

void release_project(const AsRoot &root, const RootTree &tree) noexcept
{
    fault_point("releasing");
    try {
        for (const auto &point : tree.project_points)
            detach_at(root, point);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort
    }
}

std::vector<std::string> name_hidden(const RootTree &tree, const OpenedProject &project)
{
    std::vector<std::string> notices = project.notices;
    for (const auto &path : tree.covered)
        notices.push_back("not shown to the agent: " + escape_for_display(project.shown.path() + "/" + path) +
                          " (another file system mounted inside the root)");
    for (const auto &path : tree.closed)
        notices.push_back("not shown to the agent: " + escape_for_display(project.shown.path() + "/" + path) +
                          " (a root with rules of its own; start pi there to work in it)");
    return notices;
}

// --- A place for data that others keep and a policy shows (`readable` of a user), and the groups by which its user reads it.

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

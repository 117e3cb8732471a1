// Shows the host's directories, and what a session sees of its user's home.
#include "runner/root/view/root_tree.hpp"

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
    if (const std::string path = resolve_trusted(build::sudo_path, "host's sudo").canonical; is_shown(HostView{}, path))
        late.push_back(
            {clone_read_only(root, open_trusted(std::string(build::shim_directory) + "/sudo", O_PATH, "explanation of sudo")), path});
}

constexpr const char *frame_name = "user-home";
constexpr const char *lower_name = "lower"; // in the session's directory: where an overlay finds its lower layer

// The errors of a kernel or file system that cannot do it: no id map, no overlay over or upon it.
bool is_inability(int error)
{
    return error == EINVAL || error == EPERM || error == EOPNOTSUPP || error == ENODEV || error == ENOSYS;
}

// Returns or throws what `make` does. Meanwhile the mount is attached at a path that only root can change.
DetachedMount make_upon(const AsRoot &root, const DetachedMount &mount, const std::string &path, const std::function<DetachedMount()> &make)
{
    attach(root, mount, open_trusted(path, O_PATH | O_DIRECTORY, "place of a lower layer"));
    const auto detach = [&] {
        try {
            detach_at(root, path);
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it goes with this mount table, and the next mount finds the place taken
        }
    };
    try {
        DetachedMount made = make();
        detach();
        return made;
    } catch (...) {
        detach();
        throw;
    }
}

constexpr const char *read_only_files[] = {
#include "runner/kernel_files.inc"
};
constexpr std::array<const char *, 2> unreadable = {"/proc/kallsyms", "/proc/kcore"};

// Only the kernel makes names in /proc. None where this kernel does not have the file.
UniqueFd find_kernel_file(const char *path)
{
    return if_there([&] { return open_or_throw(std::string("opening ") + path, path, O_PATH | O_NOFOLLOW); });
}

// The kernel's settings below /proc, which a session may not change: what ProtectKernelTunables= (systemd.exec(5)) does there.
// Mounts for the files that this kernel has: read-only copies, and something that nobody can open over files about the kernel's memory. The
// unit's property would do it, but systemd 252 and 257 then read the whole mount table once more for each file. Throws.
std::vector<LateMount> protect_kernel_files(const AsRoot &root)
{
    std::vector<LateMount> late;
    if (!defence_is_on("kernel-files")) return late;
    const MountAttributes attributes{true, nullptr};
    for (const char *path : read_only_files)
        if (const UniqueFd file = find_kernel_file(path)) late.push_back({clone_mount(root, file, Submounts::leave_out, attributes), path});
    const UniqueFd device = open_or_throw("opening /dev/null", "/dev/null", O_PATH | O_NOFOLLOW);
    for (const char *path : unreadable) // a device node in a mount with nodev: opening it is EACCES (mount(8))
        if (find_kernel_file(path)) late.push_back({clone_mount(root, device, Submounts::leave_out, attributes), path});
    return late;
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
    if (view.view == View::minimal && path_exists(package_files_directory)) {
        session.make_directory(std::string("root") + package_files_directory);
        const UniqueFd files = open_trusted(package_files_directory, O_PATH | O_DIRECTORY, "copies of packages' files");
        late.push_back({clone_read_only(root, files), package_files_directory});
    }
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
            session.make_link(is_within(link.first, "/run") ? link.first.substr(1) : "root" + link.first,
                              link.second); // root_tree.cpp makes /run beside the root
    return late;
}

HomeMounts::HomeMounts(const AsRoot &root, const SessionDirectory &session, const HostView &view, OpenedHome home, const std::string &named,
                       const Policy &policy, RootTree &tree)
    : root_(root), session_(session), policy_(policy), tree_(tree), home_(std::move(home))
{
    if (home_.path.empty() || policy_.projects.paths == ProjectPaths::alias) home_.links.clear(); // no home of the host is shown
    std::erase_if(home_.links, [&](const auto &link) { return link.first.find('/') != std::string::npos || !is_in_project(link.second); });
    if (!home_.directories.empty()) mounts_ = list_mounts();
    for (auto &directory : home_.directories) {
        if ((directory.is_shared() && !has_place_beside(directory, view)) || !can_be_shown(directory)) continue;
        directories_.push_back(&directory);
        places_.push_back(place_in_agent_home(directory.path));
    }
    make_own_places(view);
    make_second_name(view, named);
}

bool HomeMounts::is_in_project(const std::string &path) const
{
    return std::any_of(tree_.shown_roots.begin(), tree_.shown_roots.end(),
                       [&](const std::string &shown) { return is_within(path, shown); });
}

void HomeMounts::leave_out(const HomeDirectory &directory, const std::string &why)
{
    shown_.notices.push_back("not shown to the agent: " + escape_for_display(written_home_path(directory.path)) + " (" +
                             key_of_home_directory(policy_.rules, directory.path, directory.is_cache) + "): " + why);
}

std::string HomeMounts::on_host(const HomeDirectory &directory) const
{
    return directory.is_shared() ? directory.path : join_path(home_.path, directory.path);
}

bool HomeMounts::can_be_shown(const HomeDirectory &directory)
{
    if (!directory.problem.empty())
        leave_out(directory, directory.problem);
    else if (kernel_path(directory.directory) != on_host(directory) && defence_is_on("same-place"))
        leave_out(directory, "it was moved while the session was being prepared");
    else if (!topmost_mounts_below(mounts_, on_host(directory)).empty() && defence_is_on("cover-submounts"))
        leave_out(directory, "something is mounted inside it"); // a clone would uncover what is below that mount
    else if (const auto *mount = mount_that_holds(mounts_, directory.directory); mount != nullptr && mount->type.compare(0, 4, "fuse") == 0)
        leave_out(directory,
                  "a program answers for its file system (" + escape_for_display(mount->type) + "), and root does not wait for that");
    else
        return true;
    return false;
}

// For scripts of a toolchain that name it by its own path. Everything else that is shown below the home gets its place in the frame, too.
void HomeMounts::make_own_places(const HostView &view)
{
    if (policy_.projects.paths == ProjectPaths::alias) return; // which shows no home of the host
    for (const auto *directory : directories_)
        if (!directory->is_shared() && is_at_own_path(directory->path, directory->is_cache) &&
            !is_in_project(join_path(home_.path, directory->path)))
            own_places_.insert(directory->path);
    if (own_places_.empty() && home_.links.empty()) return;
    // The unit names the path, and the view must not show the directories around it: there the user may be able to exchange directories.
    if (problem_of_root_in_unit(home_.path) || problem_of_place(home_.path) || is_shown(view, home_.path)) {
        home_.links.clear();
        if (own_places_.empty()) return;
        shown_.notices.push_back("toolchains appear only in the agent's home, and not below " + escape_for_display(home_.path) +
                                 ": that is in what sessions are shown anyway, or its name holds other characters than A-Z a-z 0-9 / _ . "
                                 "= @ -");
        return own_places_.clear();
    }
    std::vector<std::string> places(own_places_.begin(), own_places_.end());
    const auto add_place = [&](const std::string &path) {
        const bool lies_below = path != home_.path && is_within(path, home_.path);
        if (lies_below) places.push_back(path.substr(home_.path.size() + 1));
        return lies_below;
    };
    for (const auto &path : tree_.shown_roots)
        add_place(path);
    for (const auto &path : view.trees)
        if (add_place(path)) tree_.binds.push_back(Bind{tree_.path + path, path, true});
    std::erase_if(home_.links, [&](const auto &link) {
        return std::any_of(places.begin(), places.end(),
                           [&](const std::string &place) { return is_within("/" + place, "/" + link.first); });
    });
    for (const auto &[name, target] : home_.links) {
        session_.make_link(std::string(frame_name) + "/" + name, target);
        shown_.places.emplace_back(join_path(home_.path, name), target);
    }
    make_frame(root_, session_, frame_name, places);
    tree_.binds.push_back(Bind{session_.path() + "/" + frame_name, home_.path, false});
}

// Checks that nobody moved a directory out of sight of the first reading of the mount table: what is mounted inside would be uncovered.
void HomeMounts::require_same_places() const
{
    const std::vector<MountEntry> mounts = list_mounts();
    for (const auto *directory : directories_) {
        const std::string path = on_host(*directory);
        const bool is_moved = kernel_path(directory->directory) != path && defence_is_on("same-place");
        if (is_moved || (!topmost_mounts_below(mounts, path).empty() && defence_is_on("cover-submounts")))
            throw Failure(FailureKind::changed_meanwhile,
                          escape_for_display(written_home_path(directory->path)) +
                              " was moved, or a file system was mounted in it, while the session was being prepared; try again");
    }
}

ShownHome HomeMounts::make(const Account &user, const Account &agent, const StateDirectory &state, FdRef defaults, FdRef scratch)
{
    if (directories_.empty()) return std::move(shown_);
    const auto toolchains = static_cast<std::size_t>(
        std::count_if(directories_.begin(), directories_.end(), [](const auto *one) { return !one->is_cache; })); // toolchains come first
    std::vector<std::string> places;
    std::size_t looked_at = 0; // places of toolchains, which come first as well
    for (std::size_t index = 0; index < places_.size(); ++index) {
        if (places_[index].empty()) continue;
        places.push_back(places_[index]);
        if (index < toolchains) ++looked_at;
    }
    const std::vector<std::string> filled = ask(
        root_, {"maker of mount points", agent, {state.home.get(), defaults.get()}},
        [&](const AsUser & /*self*/) {
            fault_point("making-mounts");
            return Texts{make_mount_points(state.home, defaults, places, looked_at)};
        },
        [&](std::string_view bytes) { return decode_texts(bytes, places.size()); });
    const UniqueFd cache_map = toolchains < directories_.size() ? make_id_map(root_, user, agent, Others::unmapped) : UniqueFd();
    std::vector<Cache> caches;
    std::size_t layers = 0; // a cache that is left out may have begun one
    for (std::size_t index = 0; index < directories_.size(); ++index) {
        const HomeDirectory &directory = *directories_[index];
        show_or_leave_out(directory, [&] {
            const bool overlaid = directory.is_cache && defence_is_on("cache-overlay");
            const MountAttributes attributes{!directory.is_cache || overlaid, directory.is_cache ? &cache_map : &tree_.id_map};
            const auto copy = [&] { return clone_mount(root_, directory.directory, Submounts::leave_out, attributes); };
            if (directory.is_shared()) return show_shared(directory);
            DetachedMount mount = copy();
            if (overlaid)
                caches.push_back({index, std::move(mount), make_cache_layer(scratch, layers++, agent, masked_in(directory.path))});
            else
                show_later(index, state.home_path, std::move(mount), own_places_.contains(directory.path) ? copy() : DetachedMount{});
        });
    }
    require_same_places();
    for (const auto &place : filled)
        if (std::find(shown_.readable.begin(), shown_.readable.end(), "~/" + place) != shown_.readable.end())
            shown_.notices.push_back("your toolchain replaces the agent's own ~/" + escape_for_display(place) +
                                     ", which is hidden meanwhile (" + key_of_home_directory(policy_.rules, place, false) + ")");
    if (!caches.empty()) {
        session_.make_directory(lower_name);
        with_own_mounts(root_, [&] {
            // An overlay acts as its maker: root would get into what file systems reserve for root.
            if (defence_is_on("overlay-identity")) act_on_files_as(root_, agent);
            for (const auto &cache : caches)
                show_or_leave_out(*directories_[cache.index], [&] {
                    DetachedMount own;
                    DetachedMount mount = make_overlay(cache, own);
                    show_later(cache.index, state.home_path, std::move(mount), std::move(own));
                });
        });
    }
    caches.clear();
    home_.directories.clear();
    return std::move(shown_);
}

// Never with an id map: it is data of others, and the user's own sockets and private files in it would become the agent's. Large file
// systems of clusters know no id maps either.
void HomeMounts::show_shared(const HomeDirectory &directory)
{
    DetachedMount mount = clone_mount(root_, directory.directory, Submounts::leave_out, MountAttributes{true, nullptr});
    tree_.late.push_back({std::move(mount), directory.path});
    shown_.readable.push_back(directory.path);
    shown_.places.emplace_back(directory.path, directory.path);
}

void HomeMounts::show_later(std::size_t index, const std::string &agent_home, DetachedMount mount, DetachedMount own)
{
    const HomeDirectory &directory = *directories_[index];
    const std::string own_place = on_host(directory);
    const bool in_own_place = static_cast<bool>(own.fd);
    const bool has_place = !places_[index].empty();
    if (!in_own_place && !has_place) return; // no home of the host is shown
    const std::string place = has_place ? join_path(agent_home, places_[index]) : own_place;
    shown_.places.emplace_back(own_place, in_own_place ? own_place : place);
    if (in_own_place) tree_.late.push_back({std::move(own), own_place});
    if (has_place) tree_.late.push_back({std::move(mount), place});
    (directory.is_cache ? shown_.caches : shown_.readable).push_back(has_place ? "~/" + places_[index] : own_place);
}

// An overlay takes its layers by path alone, and the lower one only from a mount that is attached (kernel, overlayfs). Never with
// userxattr: the agent could write attributes that the overlay takes for its own notes. `own`: a copy for its own path, where it has one.
DetachedMount HomeMounts::make_overlay(const Cache &cache, DetachedMount &own) const
{
    const std::string lower = session_.path() + "/" + lower_name;
    const std::string scratch = session_.path() + "/scratch/";
    const std::vector<MountOption> options = {{"source", "pi-agent-cache"},
                                              {"lowerdir", lower},
                                              {"upperdir", scratch + cache.upper.upper},
                                              {"workdir", scratch + cache.upper.work},
                                              {"redirect_dir", "nofollow"},
                                              {"metacopy", "off"},
                                              {"index", "off"}};
    DetachedMount overlay =
        make_upon(root_, cache.lower, lower, [&] { return new_filesystem(root_, "overlay", options, false, Execution::allowed); });
    if (!own_places_.contains(directories_[cache.index]->path)) return overlay;
    // The kernel copies mounts that are attached.
    return make_upon(root_, overlay, lower, [&] {
        own = clone_mount(root_, overlay.fd, Submounts::leave_out, MountAttributes{});
        return clone_mount(root_, overlay.fd, Submounts::leave_out, MountAttributes{});
    });
}

void HomeMounts::show_or_leave_out(const HomeDirectory &directory, const std::function<void()> &step)
{
    try {
        step();
    } catch (const SystemFailure &failure) {
        if (!is_inability(failure.error_number())) throw;
        const std::string why =
            "this kernel cannot show it to another account" + name_mount(mounts_, directory.directory) + ": " + failure.what();
        if ((directory.is_cache ? policy_.toolchains.caches : policy_.toolchains.readable).best_effort) return leave_out(directory, why);
        const char *hint = directory.is_cache
                               ? "; where it is the state directory's file system that cannot hold an overlay's changes: 'scratch: tmpfs'"
                               : "";
        const std::string key = key_of_home_directory(policy_.rules, directory.path, directory.is_cache);
        const bool is_users = !key.starts_with("toolchains"); // whose key has no word for what is optional
        throw Failure(FailureKind::file_system,
                      escape_for_display(written_home_path(directory.path)) + ": " + why +
                          (is_users ? "; ask the administrator to leave it out of " + key
                                    : "; ask the administrator to make it optional: '" + key + ": best_effort', or a list without it") +
                          hint);
    }
}

} // namespace pi_agent

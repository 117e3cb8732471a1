// What a session sees as its file system, built by descriptor before the unit starts: root tree, covers, devices.
#pragma once

#include "runner/as_user/protected_paths.hpp"

#include "runner/root/errand/errand.hpp"

namespace pi_agent {

// The device nodes of the host that a session gets (policy: devices).
struct ShownDevices {
    std::vector<std::string> nodes;   // absolute; a node that appears later is not among them
    std::vector<Gid> groups;          // that may open them, where not everybody may
    std::vector<std::string> notices; // what the user should know, one text each
};

// Looks at the nodes below the host's /dev, which root alone can change, and opens none. Throws Failure(configuration) for anything that is
// not a character device.
ShownDevices find_devices(const AsRoot &root, const std::vector<PolicyPath> &devices);

// Root's half of `protect` and `mask`: the mounts that keep the agent from changing what git executes, and from what it may not read.
class ProjectGuards {
public:
    // Starts the search, and does not wait for it before wait_for_search() or apply().
    ProjectGuards(const AsRoot &root, const Account &user, const OpenedProject &project, const ProjectsPolicy &policy);

    // Mounts over what is protected and masked in one tree of the project. `mount` is already attached there, with what hides its
    // submounts. Throws what the search found wrong, and Failure(system_failure) when the tree changes meanwhile.
    void apply(const AsRoot &root, const SessionDirectory &session, const ShownTree &tree, const DetachedMount &mount);
    // Mounts in the launcher's mount table, before the agent starts: protected paths of submodules and worktrees. There may be thousands,
    // and systemd makes a unit for each mount of the host. Of these only what git replaces in everyday work is among the host's mounts.
    void apply_inside(const AsRoot &root, FdRef mount_namespace, const std::string &project_path);
    // Whether there are such paths.
    [[nodiscard]] bool has_inner() const noexcept { return !inner_.empty(); }
    // Waits for the search, as apply() does, and throws what it found wrong. Calls `meanwhile` now and then.
    void wait_for_search(const std::function<void()> &meanwhile);

    // Call it when everything is mounted over: ends the child, which takes a moment.
    void end_search() noexcept { child_.reset(); }

    // After apply(): what is read-only (without the directories above it), and what the user should know.
    [[nodiscard]] const std::vector<std::string> &read_only() const noexcept { return read_only_; }
    [[nodiscard]] bool has_masks() const noexcept { return has_masks_; }
    [[nodiscard]] RepositoryConfig repository_config() const;
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }
    // Which git commands the user can run outside only when the session is over.
    [[nodiscard]] std::vector<std::string> waiting_outside() const;

private:
    struct Inner {
        const ShownTree *tree;
        UniqueFd top; // among the host's mounts
        std::map<std::string, PointKind> points;
    };

    void record(const SessionDirectory &session, const ShownTree &tree, const std::vector<std::string> &placeholders);
    void keep_for_later(const ShownTree &tree, const DetachedMount &mount, std::map<std::string, PointKind> points);

    Uid user_;
    std::vector<Inner> inner_;
    std::vector<std::string> paths_;  // of the trees, the project first
    std::vector<std::string> closed_; // roots that the session does not see
    std::optional<Child> child_;
    std::vector<GuardedPaths> found_; // of each tree
    std::size_t recorded_ = 0;
    std::vector<std::string> read_only_;
    bool has_masks_ = false;
    std::vector<std::string> notices_;
};

// What a session sees as its file system: its root tree, built by descriptor before the unit starts (design, launch step 6).

// --- Empty directories that nobody can write, down to the mount points in them.

// A part of the session directory that replaces one of the host's directories.
struct Frame {
    std::string name; // in the session directory
    std::string root_path;
};

// Makes `places` below the directory `name` of the session and mounts that read-only onto itself. Returns it, for mounting on the places.
UniqueFd make_frame(const AsRoot &root, const SessionDirectory &session, const std::string &name, const std::vector<std::string> &places);

// --- Hides in a tree what its session does not see, below stand-ins. Both return what they hid, relative to the tree.

// What is mounted there. `shown_at`: where `mount` is attached.
std::vector<std::string> cover_submounts(const AsRoot &root, const SessionDirectory &session, const DetachedMount &mount,
                                         const ShownTree &tree, const std::string &shown_at);

// Roots inside it, of `closed`, whose own rules this session does not keep; not those that are `covered` already. Whoever exchanges a
// directory meanwhile has the start refused.
std::vector<std::string> cover_closed(const AsRoot &root, const SessionDirectory &session, const DetachedMount &mount,
                                      const ShownTree &tree, const std::vector<AgentPlace> &closed,
                                      const std::vector<std::string> &covered);

// --- The tree, with the project in it.
struct RootTree {
    std::string path;                        // the unit's RootDirectory=
    std::vector<Bind> binds;                 // the unit's BindPaths= and BindReadOnlyPaths=
    std::vector<std::string> covered;        // mounts inside the project that are hidden, relative to it; any bytes
    std::vector<std::string> closed;         // roots inside the project that have rules of their own, likewise
    std::string project_path;                // where the agent sees the project; any bytes
    std::vector<std::string> shown_roots;    // that the unit names; none where the project is in the agent's home
    std::vector<std::string> writable_roots; // the same, or none where the project is read-only
    std::vector<std::string> project_points; // where the project, or what holds it, is mounted among the host's mounts
    std::vector<LateMount> late;             // attached when systemd has made the view
    UniqueFd devpts;                         // root of the session's own devpts
    UniqueFd id_map;                         // of the user's directories
};

// Which parts of the session directory, and which files of the product, the unit shows where.
std::vector<Bind> tree_binds(const std::string &session_path, const std::string &home_path, const std::vector<Frame> &frames,
                             bool read_only);

// Where the agent sees the project.
std::string place_of_project(const ShownTree &shown, ProjectPaths paths, const std::string &home_path);

// Why a project at `path` cannot be shown: its file system has this type, or the kernel cannot map it (with its name_mount()).
std::optional<std::string> problem_of_file_system(const std::string &path, const std::string &type);
std::string problem_of_mapping(const std::string &path, const std::string &mount_name);

// `guards`: of the project. What they find is mounted over, and their results are known afterwards. `locked_settings`, `locked_mcp`: what
// the agent gets as its settings.json and mcp.json and cannot change, or none; the home must then have such files.
RootTree build_root_tree(const AsRoot &root, const SessionDirectory &session, const HostView &view, const OpenedProject &project,
                         const ProjectsPolicy &projects, const StateDirectory &state, const Account &user, const Account &agent,
                         const UniqueFd &locked_settings, const UniqueFd &locked_mcp, ProjectGuards &guards);

// Call it when the unit has ended: takes the project's mounts off the host. Protected paths are mount points there, which nobody can rename
// or replace, and a user who waited for the session may want to at once. best_effort: the session's removal does it as well.
void release_project(const AsRoot &root, const RootTree &tree) noexcept;

// What the user should know of it: the covered mounts, one text each.
std::vector<std::string> name_hidden(const RootTree &tree, const OpenedProject &project);

// --- Mounts what a session sees of the host, as its view was planned (runner/plan/host_view.hpp).

// Puts the host's trees into the session's root tree, and returns what must follow late. Call it before anything else is mounted there: it
// makes mount points on the way.
std::vector<LateMount> show_host(const AsRoot &root, const SessionDirectory &session, const HostView &view);

// --- Chooses what sessions see of the host, from the policy and from where symlinks lead.

// Opens trusted paths only. Throws Failure(configuration) for a path that others than root can change, that does not exist, or that leads
// where no session looks.
HostView plan_host_view(const Policy &policy);

// The same for one of view_paths alone.
void require_can_be_shown(const Policy &policy, const PolicyPath &path);

// --- Mounts what a session sees of its user's home (policy: toolchains).
struct ShownHome {
    std::vector<std::string> notices;  // what the user should know, one text each
    std::vector<std::string> readable; // where the agent sees them; any bytes
    std::vector<std::string> caches;
    std::vector<ShownAs> places = {}; // for what is readable
};

// Toolchains as read-only clones, caches each below an overlay of this session: where the tools inside look for them in the agent's home,
// at their own path, or both (common/policy/policy_paths.hpp). Works in two steps, because systemd can build the unit during the second.
class HomeMounts {
public:
    // Borrows all of it except `home`. Adds to `tree` what the unit shows besides: a frame instead of the home, and late mounts.
    // `named`: the home as the user database has it.
    HomeMounts(const AsRoot &root, const SessionDirectory &session, const HostView &view, OpenedHome home, const std::string &named,
               const Policy &policy, RootTree &tree);

    // Of data that others keep, which its user reads by a group: the session needs that group as well.
    [[nodiscard]] std::vector<Gid> groups(const Account &user) const;

    // Makes the mount points in the agent's home, by a child that is the agent, and the mounts. Files that `defaults` puts there do not
    // count as the agent's own. An overlay's changes are in `scratch` (of make_scratch). Lets go of the user's directories: what a session
    // holds open could not be unmounted outside. Call it once. Throws Failure(unavailable) for what the kernel or the file system cannot
    // do, unless the policy says best_effort.
    ShownHome make(const Account &user, const Account &agent, const StateDirectory &state, FdRef defaults, FdRef scratch);

private:
    struct Cache {
        std::size_t index; // in directories_
        DetachedMount lower;
        CacheLayer upper;
    };

    void leave_out(const HomeDirectory &directory, const std::string &why);
    bool can_be_shown(const HomeDirectory &directory);
    bool has_place_beside(HomeDirectory &directory, const HostView &view);
    [[nodiscard]] std::string on_host(const HomeDirectory &directory) const;
    void make_own_places(const HostView &view);
    void make_second_name(const HostView &view, const std::string &named);
    [[nodiscard]] bool is_in_project(const std::string &path) const;
    void require_same_places() const;
    void show_shared(const HomeDirectory &directory);
    void show_later(std::size_t index, const std::string &agent_home, DetachedMount mount, DetachedMount own);
    [[nodiscard]] DetachedMount make_overlay(const Cache &cache, DetachedMount &own) const;
    void show_or_leave_out(const HomeDirectory &directory, const std::function<void()> &step);

    const AsRoot &root_;
    const SessionDirectory &session_;
    const Policy &policy_;
    RootTree &tree_;
    OpenedHome home_;
    std::vector<MountEntry> mounts_;
    std::vector<const HomeDirectory *> directories_; // the shown ones
    std::vector<std::string> places_;                // their places in the agent's home
    std::set<std::string> own_places_;               // of toolchains and environments, relative to the home
    ShownHome shown_;
};

// --- Files that root writes into a session's view: they belong to nobody else, and root reads nothing for them.

// Puts the notes where the agent looks for instructions, above every project, and cannot write. Arguments would not do:
// --append-system-prompt replaces the user's own APPEND_SYSTEM.md, and breaks `pi install` and similar commands. The agent's home would not
// do either, because other sessions share it.
void show_box_notes(const SessionDirectory &session, const BoxFacts &facts);

// passwd and group of the session: root, nobody, the agent and its user, their own groups, and those that the session's processes have:
// the agent's and `further`. id(1) fails where one has no name. Not in the host's view.
void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, const std::vector<Gid> &further);

// --- The session's pty, in a devpts instance of its own: the master is for the user's wrapper, the slave for the agent (design rule 5).

// The agent's end, which the agent owns with mode 0600, where the request wants a terminal. The other end goes to the wrapper, which sets
// it up while the sandbox is built. `devpts` is the root of the session's devpts mount. Root opens both ends there and forwards no byte.
UniqueFd give_terminal(const AsRoot &root, FdRef devpts, const Account &agent, const Request &request, FdRef wrapper);

} // namespace pi_agent

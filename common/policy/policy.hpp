// The policy as types: what /etc/pi-agent/policy.yaml says, after all checks.
#pragma once

#include "common/base/error.hpp"
#include "common/policy/config_classes.hpp"
#include "common/policy/ip_range.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

enum class Accounts { unspecified, shared, per_user };

// Where the state is unless the policy says another place. What apply keeps is always here.
constexpr const char *default_state_dir = "/var/lib/pi-agent";

struct AgentPolicy {
    std::string binary = "/usr/lib/pi-agent/agent/bin/pi";
    Position binary_where;
    std::string user = "pi-agent";
    Position user_where;
    std::string group = "pi-agent";
    Accounts accounts = Accounts::unspecified; // the loader refuses this if more than one user is possible
    bool create_user = true;
    std::string binary_name = "pi";
    std::string state_dir = default_state_dir;
    Position state_dir_where;
    Position where; // of the section, or of the policy without the section
};

struct WrapperPolicy {
    bool enable = true; // false: the emergency stop, no launch
    std::string command_name = "pi";
    Position command_name_where;
    bool hide_direct_binary = true;
    bool clipboard = true; // the agent's output may set the clipboard of its user's terminal
    Position where;
};

// What confines the agent. Explicit: one method never replaces another.
enum class SandboxMethod {
    systemd, // a hardened unit
    bwrap,   // bubblewrap, where systemd is not PID 1
    podman,  // root's podman, in a unit
    docker,  // the same of docker's
    none,    // nothing: an account of its own in a plain unit
};

struct SandboxPolicy {
    SandboxMethod method = SandboxMethod::systemd;
    std::string image; // for docker and podman: the root directory below the view; podman does without
    Position image_where;
    Position where;
};

using Environment = std::map<std::string, std::string>;
using EnvironmentPlaces = std::map<std::string, Position>; // where the policy sets each

// A path that the policy names.
struct PolicyPath {
    std::string path;
    Position where;
    bool is_directory = false; // written with a '/' at its end, if that has a meaning
};

// What sessions see of the host's /etc: a short list (runner/plan/host_view.cpp, runner/as_agent/places.cpp), or all that is readable.
enum class View { minimal, host };

enum class NetworkMode {
    full,     // the host's, without restriction
    loopback, // the host's, its loopback addresses alone
    none,     // one of the session's own, with nothing in it but a loopback
    listed,   // the host's, the addresses of a list alone
};

struct NetworkPolicy {
    NetworkMode mode = NetworkMode::full;
    std::vector<IpRange> allowed; // loopback and listed: with these, in both directions
    Position where;
};

// Where a session's temporary directories are: on the state directory's file system, or in memory.
enum class ScratchKind { disk, tmpfs };

// Where a session shows the project: at its path on the host, or below the agent's home (runner/plan/host_view.hpp).
enum class ProjectPaths { host, alias };

// Whether debuggers work on a session's own processes: where Landlock or a PID namespace confines them, everywhere, or nowhere.
enum class Tracing : std::uint8_t { automatic, always, never };

// What `hardening` says of system calls and sockets (common/policy/session_calls.hpp).
struct CallsPolicy {
    std::vector<PolicyPath> denied;   // names and @groups that fail in sessions, besides what always does
    std::vector<PolicyPath> allowed;  // names that do not fail, of those that do otherwise
    std::vector<PolicyPath> families; // kinds of sockets; all of them where it is empty
};

// What a session shows: the allowed root that holds the working directory, or only the repository in it that does.
enum class ProjectScope { root, project };

// Whose the files are that the agent makes in a project: its user's, by an id-mapped mount, or the agent's account's, as the kernel has it.
enum class ProjectOwnership { idmap, none };

// Paths; or, without a value, what git executes.
using Protection = std::optional<std::vector<PolicyPath>>;

struct ProjectsPolicy {
    ProjectPaths paths = ProjectPaths::host;
    ProjectScope scope = ProjectScope::root;
    ProjectOwnership ownership = ProjectOwnership::idmap;
    Protection protect;           // read-only inside, relative to the repository; unset: what git executes
    std::vector<PolicyPath> mask; // unreadable inside: a pattern of a name, or with '/' of a path
    bool aftermath = true;        // `pi` lists at the end what would run code outside later
    bool read_only = false;       // a session cannot change it
};

// Directories in users' homes, relative to the home.
struct HomeDirectories {
    std::vector<PolicyPath> paths; // no position in the policy if they come from the default list
    bool best_effort = false;      // leave out, by name, what kernel or file system cannot show, instead of failing
};

struct ToolchainsPolicy {
    HomeDirectories readable; // read-only inside
    HomeDirectories caches;   // inside, a copy that ends with the session
};

// A limit of the policy, with its text and position.
struct SaidLimit {
    std::uint64_t amount = 0;
    std::string text;
    Position where;
};

// What a start does where no quota of the file system holds limits.disk: it tells its user, or measures the home as well, or ends.
enum class WithoutQuota : std::uint8_t { tell, measure, refuse };

// If unset: the default of runner/plan/limits.hpp, or no limit.
struct LimitsPolicy {
    std::optional<SaidLimit> memory;       // of a session, bytes
    std::optional<SaidLimit> memory_share; // or instead: percent of the host's
    std::optional<SaidLimit> tasks;        // processes and threads of a session
    std::optional<SaidLimit> cpu;          // of a session, percent of one processor
    std::optional<SaidLimit> runtime;      // of a session, seconds
    std::optional<SaidLimit> sessions;     // of one user at once
    std::optional<SaidLimit> disk;         // of one user's agent, home and temporary files together; bytes
    std::optional<WithoutQuota> without_quota; // unset: tell
};

// By file name: the JSON text of an object, parsed only where it is merged. Including the parser's header takes seconds of compile time.
using Documents = std::map<std::string, std::string>;

// Where the policy says a value, and at which key: "users.alice.limits.memory".
struct SaidAt {
    Position where;
    std::string key;
};
using SaidPlaces = std::map<std::string, SaidAt>; // by the value's own key: "limits.memory"

// What one level of the policy says: the whole policy, a group, a user or a root. A value that it does not say is for the level around it
// to say, or has its default. The levels are merged by common/policy/policy_levels.hpp.
struct Rules {
    std::optional<NetworkPolicy> network;
    LimitsPolicy limits;
    std::optional<ProjectPaths> paths;
    std::optional<ProjectScope> scope;
    std::optional<ProjectOwnership> ownership; // of the whole policy alone
    std::optional<Protection> protect;
    std::optional<std::vector<PolicyPath>> mask;
    std::optional<bool> aftermath;
    std::optional<bool> read_only;
    Documents documents;
    std::optional<bool> settings_lock;
    std::optional<std::vector<PolicyPath>> env_files;
    std::optional<HomeDirectories> readable; // of toolchains, as written
    std::optional<HomeDirectories> caches;
    std::optional<std::vector<PolicyPath>> own_readable; // `readable` of a user
    std::optional<std::vector<PolicyPath>> view_paths;
    std::optional<std::vector<PolicyPath>> path;
    std::optional<std::vector<PolicyPath>> devices;
    std::optional<ScratchKind> scratch;
    SaidPlaces places; // of what it says

    // Calls `visit` with each value's own key, and that value of all these rules. Not for documents, which are merged, not replaced.
    template <typename Visit, typename... Some>
    static void each(const Visit &visit, Some &...rules)
    {
        visit("network", rules.network...);
        visit("limits.memory", rules.limits.memory...); // at most one of these two is there
        visit("limits.memory", rules.limits.memory_share...);
        visit("limits.tasks", rules.limits.tasks...);
        visit("limits.cpu", rules.limits.cpu...);
        visit("limits.runtime", rules.limits.runtime...);
        visit("limits.sessions", rules.limits.sessions...);
        visit("limits.disk", rules.limits.disk...);
        visit("limits.disk_without_quota", rules.limits.without_quota...);
        visit("projects.paths", rules.paths...);
        visit("projects.scope", rules.scope...);
        visit("projects.ownership", rules.ownership...);
        visit("projects.protect", rules.protect...);
        visit("projects.mask", rules.mask...);
        visit("projects.aftermath", rules.aftermath...);
        visit("projects.read_only", rules.read_only...);
        visit("settings_lock", rules.settings_lock...);
        visit("env_files", rules.env_files...);
        visit("toolchains.readable", rules.readable...);
        visit("toolchains.caches", rules.caches...);
        visit("readable", rules.own_readable...);
        visit("view_paths", rules.view_paths...);
        visit("path", rules.path...);
        visit("devices", rules.devices...);
        visit("scratch", rules.scratch...);
    }
};
// Of a user or root; without them it says nothing. A policy may have a hundred thousand of both.
using RulesPtr = std::shared_ptr<const Rules>;

// "~/projects" or "/srv/app", as written; a child with the user's rights resolves it (common/decide/root_path.hpp).
struct RootSpec {
    std::string text;
    Position where;
    bool at_own_path = true;    // the unit names it; under `paths: alias` it does not, and the name may have any bytes
    std::size_t index = 0;      // in the list that the policy gives
    RulesPtr rules = {};        // for sessions in it
    std::string state_dir = {}; // of the policy, if it is not the default, which no root holds anyway
};

// One entry of `users`: an account, or a group if the key begins with '%'.
struct UserEntry {
    std::string name; // without the '%'
    bool is_group = false;
    Position where;
    std::vector<RootSpec> roots;
    std::optional<std::string> config; // config directory: relative to home, or absolute
    std::optional<std::string> run_as;
    Position run_as_where;
    std::optional<std::string> ssh_key;     // for the agent's git: relative to home, or absolute
    std::optional<std::string> signing_key; // the same, for its commits
    Environment env;
    EnvironmentPlaces env_where;
    Position config_where;
    Position ssh_key_where;
    Position signing_key_where;
    RulesPtr rules; // for their sessions
};

struct Policy {
    AgentPolicy agent;
    WrapperPolicy wrapper;
    SandboxPolicy sandbox;
    std::vector<UserEntry> users;
    Position users_where;
    // Users whose names begin like those of agents' accounts. The policy names them itself, and not in users.d, of which a start reads one
    // file: so every start knows that they are people.
    std::set<std::string> people;
    ProjectsPolicy projects;
    ConfigClasses config_classes;
    Documents documents;        // managed, merged over the host's files of the config directory
    bool settings_lock = false; // the merged settings.json cannot be changed inside
    bool git_identity = true;   // the agent's git has the user's name, address and settings
    bool box_notes = true;      // the agent gets notes about its sandbox
    NetworkPolicy network;
    View view = View::minimal;
    std::vector<PolicyPath> view_paths; // shown in addition, read-only; absolute
    std::vector<PolicyPath> path;       // searched for programs before the host's own directories; absolute, and shown
    std::vector<PolicyPath> devices;    // of the host; absolute, or nvidia_devices (common/policy/policy_paths.hpp)
    ScratchKind scratch = ScratchKind::disk;
    LimitsPolicy limits;
    Tracing tracing = Tracing::automatic;
    CallsPolicy calls;
    ToolchainsPolicy toolchains; // as settle_toolchains (common/policy/policy_sections.hpp) makes it of the rules and the defaults
    Environment env;             // managed
    EnvironmentPlaces env_where;
    std::vector<PolicyPath> env_files;                           // managed, absolute; only root can read them
    Position host_env_files_where;                               // its position in the policy
    std::vector<std::string> host_env_files = {".pi/agent/env"}; // the user's own; managed values win: relative to home, or absolute
    Rules rules; // all that levels can say, as one of them; the members above have its values, and the defaults of what it does not say
};

// "users.alice" or "users.%devs": how diagnostics and explanations name an entry.
std::string entry_key(const UserEntry &entry);

// "users.alice.roots[0]".
std::string root_key(const UserEntry &entry, const RootSpec &root);

// As the policy writes it.
const char *to_string(SandboxMethod method);

// Whether a session is a systemd unit, which has a control group and so limits.
bool has_unit(SandboxMethod method) noexcept;

// The name of the agent account for `user` under this policy, from names alone. Where each user has one, no two users share it.
std::string agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as);

// The home of the agent of the user with this name in paths (short_name, common/host/account.hpp).
std::string agents_home(const std::string &state_dir, const std::string &user);

// Names that systemd-sysusers accepts: no dot, and at most this many bytes.
constexpr std::size_t creatable_length = 31;
bool can_be_created(const std::string &account) noexcept;

// True for agent.user. If each user has an account, also true for names that begin like theirs, except those of people.
bool has_agents_name(const Policy &policy, const std::string &name);

// True if an agent runs as the account `name`, or would for some user. Such an account is never a user of pi, whatever its groups.
bool is_agent_account(const Policy &policy, const std::string &name);

} // namespace pi_agent

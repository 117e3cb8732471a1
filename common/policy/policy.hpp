// The policy as types: what its files say, after all checks.
#pragma once

#include "common/policy/host_rule.hpp"

#include <map>
#include <memory>
#include <set>

namespace pi_agent {

// --- The limits of sessions, a row each: its bounds, what holds a session to it, and what messages say of it.

// A limit of the policy, with its text and position.
struct SaidLimit {
    std::uint64_t amount = 0;
    std::string text;
    Position where;
    friend bool operator==(const SaidLimit &one, const SaidLimit &other) noexcept { return one.amount == other.amount; }
};

// What a start does where no quota of the file system holds limits.disk: it tells its user, or ends.
enum class WithoutQuota : std::uint8_t { tell, refuse };

// If unset: the default of the table of keys, or no limit.
struct LimitsPolicy {
    std::optional<SaidLimit> memory;           // of a session, bytes
    std::optional<SaidLimit> memory_share;     // or instead: percent of the host's
    std::optional<SaidLimit> tasks;            // processes and threads of a session
    std::optional<SaidLimit> cpu;              // of a session, percent of one processor
    std::optional<SaidLimit> runtime;          // of a session, seconds
    std::optional<SaidLimit> files;            // that each process may have open
    std::optional<SaidLimit> sessions;         // of one user at once
    std::optional<SaidLimit> disk;             // of one user's agent, home and temporary files together; bytes
    std::optional<WithoutQuota> without_quota; // unset: tell
};

using LimitMember = std::optional<SaidLimit> LimitsPolicy::*;

// The rows are in common/policy/limits.toml. Amounts are in the units of LimitsPolicy. The table of keys (policy_sections.hpp) has the
// default and the meaning.
struct LimitRow {
    const char *key; // of the policy
    LimitMember said;
    std::string_view units = {}; // their letters; empty: a plain number
    std::uint64_t least;
    std::uint64_t most;
    const char *form;                 // how it is written
    const char *bounds;               // in the words of the policy, with the reason where there is one
    const char *note = nullptr;       // of what the amount is: a line for the agent; nullptr: the agent gets no line
    bool of_user = false;             // of all sessions of one user, not of each
    const char *controller = nullptr; // of control groups, which holds a session to it
    const char *property = nullptr;   // of a unit
    std::uint64_t factor = 1;         // how much of the property is one of the amount
    const char *no_job = nullptr;     // why a Job of Kubernetes cannot have it
    const char *job_remedy = nullptr;
};

inline constexpr LimitRow limit_rows[] = {
#include "common/limits.inc"
};
constexpr std::uint64_t least_memory = limit_rows[0].least;

// The one that is set, bytes or share.
const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept;
// What the policy says for the row's key; of memory, bytes or share.
const std::optional<SaidLimit> &said_for_key(const LimitsPolicy &limits, const LimitRow &row) noexcept;

// The amount that the policy says, or else the default of the row's key; nothing where neither limits. Of memory: the share, if not bytes.
std::optional<std::uint64_t> in_force(const LimitsPolicy &limits, const LimitRow &row);
// The same of a limit that has a default.
std::uint64_t in_force(const LimitsPolicy &limits, LimitMember limit);

// The amount in force as the policy or the table of keys writes it: "80%"; empty where nothing limits.
std::string text_in_force(const LimitsPolicy &limits, const LimitRow &row);

const LimitRow &limit_row(LimitMember limit);

// The default as the table of keys writes it; empty without one.
std::string_view default_text(const LimitRow &row);

// Reads the value of a row's key; reports another value. Returns nothing for the other of the two rows of memory.
struct PolicyValue;
std::optional<SaidLimit> read_said_limit(const LimitRow &row, const PolicyValue &value);

// --- What each level of the policy can say of sessions, as types: the whole policy, a group, a user, a root.

// A path that the policy names.
struct PolicyPath {
    std::string path;
    Position where;
    bool is_directory = false; // written with a '/' at its end, if that has a meaning
    friend bool operator==(const PolicyPath &, const PolicyPath &) = default;
};

// What sessions see of the host's /etc: a short list (runner/plan/host_view.cpp, runner/as_agent/home.cpp), or all that is readable.
enum class View { minimal, host };

enum class NetworkMode {
    full,     // the host's, without restriction
    loopback, // the host's, its loopback addresses alone
    none,     // one of the session's own, with nothing in it but a loopback
    listed,   // the host's, the addresses of a list alone
    hosts,    // one of the session's own, with nothing in it but what leads to a gate, which connects to the hosts of rules
};

// Whether a session has a network of its own, out of which the kernel lets nothing.
constexpr bool has_own_network(NetworkMode mode) noexcept
{
    return mode == NetworkMode::none || mode == NetworkMode::hosts;
}

struct NetworkPolicy {
    NetworkMode mode = NetworkMode::full;
    std::vector<IpRange> allowed; // loopback and listed: with these, in both directions
    Position where;
    std::vector<HostRule> hosts = {};     // hosts: these
    std::vector<HostRule> may_grant = {}; // hosts: what a start may add for itself (--pi-agent-allow)
    bool reaches_providers = true;        // hosts: the gate has a route to providers, too; a start can give it up
    std::optional<HostRule> via = {};     // hosts: the proxy by which the gate reaches them, except `direct`, at any port
    std::vector<HostRule> direct = {};
    PolicyPath via_login_file = {}; // "NAME:PASSWORD" for the proxy, which only root can read; an empty path for none
    friend bool operator==(const NetworkPolicy &, const NetworkPolicy &) = default;
};

// Whether an option of the start said it (--pi-agent-network), which has no line in a file.
inline bool is_of_start(const NetworkPolicy &network) noexcept
{
    return network.where.line == 0 && !network.where.file.empty();
}

// Who says it, for messages: the option, or the policy with the line.
inline std::string name_of(const NetworkPolicy &network)
{
    return is_of_start(network) ? to_string(network.where) : "the policy's network (" + to_string(network.where) + ")";
}

// What a start that cannot have this network can do otherwise.
inline const char *way_without(const NetworkPolicy &network) noexcept
{
    return is_of_start(network) ? "leave the option out" : "change the policy";
}

// A provider of models whose key no session has: a gate outside puts it into requests (docs/concepts/keys.md).
struct ProviderRule {
    std::string name;    // as pi calls it: "anthropic"
    PolicyPath key_file; // absolute; only root can read it
    std::string host;    // to which the key goes (common/policy/host_rule.hpp)
    Position where;      // of its name
    friend bool operator==(const ProviderRule &, const ProviderRule &) = default;
};

// Where a session's temporary directories are: on the state directory's file system, or in memory.
enum class ScratchKind { disk, tmpfs };

// Where a session shows the project: at its path on the host, or below the agent's home (runner/plan/host_view.hpp).
enum class ProjectPaths { host, alias };

// Whether debuggers work on a session's own processes: where Landlock or a PID namespace confines them, everywhere, or nowhere.
enum class Tracing : std::uint8_t { automatic, always, never };

// What `hardening` says of system calls and sockets (common/policy/policy_paths.hpp).
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

// Whether what a session changes can be taken back, and the bytes that are kept for that: of a user, and of one file.
struct UndoPolicy {
    bool on = true;
    SaidLimit size = {1UL << 30U, "1G", {}}, file = {100UL << 20U, "100M", {}};
    friend bool operator==(const UndoPolicy &, const UndoPolicy &) = default;
};

struct ProjectsPolicy {
    ProjectPaths paths = ProjectPaths::host;
    ProjectScope scope = ProjectScope::root; // as the policy says it
    ProjectOwnership ownership = ProjectOwnership::idmap;
    Protection protect;           // read-only inside, relative to the repository; unset: what git executes
    std::vector<PolicyPath> mask; // unreadable inside: a pattern of a name, or with '/' of a path
    bool aftermath = true;        // `pi` lists at the end what would run code outside later
    UndoPolicy undo = {};
    bool read_only = false; // a session cannot change it
    // A start gave up what `scope` gives: the session shows the repository alone. What is masked and protected is so as if it showed all.
    bool repository_alone = false;

    [[nodiscard]] ProjectScope shown() const noexcept { return repository_alone ? ProjectScope::project : scope; }
};

// Directories in users' homes, relative to the home.
struct HomeDirectories {
    std::vector<PolicyPath> paths; // no position in the policy if they come from the default list
    bool best_effort = false;      // leave out, by name, what kernel or file system cannot show, instead of failing
    friend bool operator==(const HomeDirectories &, const HomeDirectories &) = default;
};

struct ToolchainsPolicy {
    HomeDirectories readable; // read-only inside
    HomeDirectories caches;   // inside, a copy that ends with the session
};

// Where sessions run: on the host where pi is typed, or on a node of its cluster.
enum class PlacementEngine : std::uint8_t { none, slurm };

// A word of the policy that goes to another program.
struct PolicyWord {
    std::string text;
    Position where;
    friend bool operator==(const PolicyWord &, const PolicyWord &) = default;
};

// If unset: the cluster's own default, or what common/decide/explained.hpp takes.
struct PlacementPolicy {
    std::optional<PlacementEngine> engine;
    std::optional<PolicyWord> srun; // absolute path; of the whole policy alone
    std::optional<PolicyWord> partition;
    std::optional<PolicyWord> account;
    std::optional<PolicyWord> qos;
    std::optional<PolicyWord> constraint;
};

// By file name: the JSON text of an object, parsed only where it is merged. Including the parser's header takes seconds of compile time.
using Documents = std::map<std::string, std::string>;

// Where the policy says a value, and at which key: "users.alice.limits.memory".
struct SaidAt {
    Position where;
    std::string key;
    std::vector<SaidAt> also = {}; // where the rest of a value comes from: other groups, or for documents a level around
};
using SaidPlaces = std::map<std::string, SaidAt>; // by the value's own key: "limits.memory"

// What one level of the policy says: the whole policy, a group, a user or a root. A value that it does not say is for the level around it
// to say, or has its default. The levels are merged by common/policy/policy_levels.cpp.
struct Rules {
    std::optional<NetworkPolicy> network;
    std::optional<std::vector<ProviderRule>> providers;
    LimitsPolicy limits;
    std::optional<ProjectPaths> paths;
    std::optional<ProjectScope> scope;
    std::optional<ProjectOwnership> ownership; // of the whole policy alone
    std::optional<Protection> protect;
    std::optional<std::vector<PolicyPath>> mask;
    std::optional<bool> aftermath;
    std::optional<UndoPolicy> undo;
    std::optional<bool> read_only;
    std::optional<bool> ports;
    Documents documents;
    std::optional<bool> settings_lock;
    std::optional<bool> mcp_lock;
    std::optional<std::vector<PolicyPath>> env_files;
    std::optional<HomeDirectories> readable; // of toolchains, as written
    std::optional<HomeDirectories> caches;
    std::optional<std::vector<PolicyPath>> own_readable; // `readable` of a user
    std::optional<std::vector<PolicyPath>> view_paths;
    std::optional<std::vector<PolicyPath>> path;
    std::optional<std::vector<PolicyPath>> devices;
    std::optional<ScratchKind> scratch;
    PlacementPolicy placement;
    SaidPlaces places; // of what it says
};
// Of a user or root; without them it says nothing. A policy may have a hundred thousand of both.
using RulesPtr = std::shared_ptr<const Rules>;

// --- The class of each path of the user's config directory: whether the host's or the agent's version counts.

// mirror: the host's, restored at every start. seed: the host's if the home has no version, or if the host's has changed. once: the host's
// until the agent changes something in it, then the whole is the agent's (ConfigClasses::whole_of). agent: the version inside, never
// overwritten. never: not copied, and earlier copies are removed.
enum class FileClass { mirror, seed, once, agent, never };

std::optional<FileClass> parse_file_class(std::string_view text) noexcept;
std::string_view to_string(FileClass file_class) noexcept;
// mirror, seed and once: the host's version counts.
bool is_copied(FileClass file_class) noexcept;

// Paths are relative to the config directory, without '.', '..' or empty components.
class ConfigClasses {
public:
    // For `path` and everything below it. The longest rule counts, and any rule counts more than the defaults.
    void set(const std::string &path, FileClass file_class) { rules_[path] = file_class; }
    [[nodiscard]] FileClass of(std::string_view path) const;
    // True if something below the directory `path` may be copied. Then it must be searched, whatever its own class is.
    [[nodiscard]] bool copies_below(std::string_view path) const;
    // For a path of class `once`: the whole that it belongs to. That is the path of the rule, or a name at the top; for sessions, each
    // file.
    [[nodiscard]] std::string whole_of(std::string_view path) const;
    // The class of `path` and everything below it; empty if they differ, as for the config directory itself ("").
    [[nodiscard]] std::optional<FileClass> of_all(std::string_view path) const;
    [[nodiscard]] const std::map<std::string, FileClass, std::less<>> &rules() const noexcept { return rules_; }

private:
    [[nodiscard]] std::map<std::string, FileClass, std::less<>>::const_iterator rule_of(std::string_view path) const;

    std::map<std::string, FileClass, std::less<>> rules_;
};

// The policy as types: what /etc/pi-agent/policy.yaml says, after all checks.
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
    bool ports = false;    // a user may have ports of a session's own network on the host's loopback
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

// "~/projects" or "/srv/app", as written; a child with the user's rights resolves it (common/as_user/user_paths.hpp).
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
    bool mcp_lock = false;      // the policy's MCP servers alone: no other mcp.json counts
    bool git_identity = true;   // the agent's git has the user's name, address and settings
    bool box_notes = true;      // the agent gets notes about its sandbox
    NetworkPolicy network;
    std::vector<ProviderRule> providers; // whose keys stay outside, whatever network a session has
    View view = View::minimal;
    std::vector<PolicyPath> view_paths; // shown in addition, read-only; absolute
    std::vector<PolicyPath> path;       // searched for programs before the host's own directories; absolute, and shown
    std::vector<PolicyPath> devices;    // of the host; absolute, or nvidia_devices (common/policy/policy_paths.hpp)
    ScratchKind scratch = ScratchKind::disk;
    LimitsPolicy limits;
    PlacementPolicy placement;
    Tracing tracing = Tracing::automatic;
    CallsPolicy calls;
    ToolchainsPolicy toolchains; // as settle_toolchains (common/policy/policy_sections.hpp) makes it of the rules and the defaults
    Environment env;             // managed
    EnvironmentPlaces env_where;
    std::vector<PolicyPath> env_files;                           // managed, absolute; only root can read them
    Position host_env_files_where;                               // its position in the policy
    std::vector<std::string> host_env_files = {".pi/agent/env"}; // the user's own; managed values win: relative to home, or absolute
    Rules rules; // what the levels together say; a member above has the value from here, or its own initialiser where no level says one
};

// Of its providers, those to which the session's gate has a route: all of them, or none.
const std::vector<ProviderRule> &routed_providers(const Policy &policy) noexcept;

// "users.alice" or "users.%devs": how diagnostics and explanations name an entry.
std::string entry_key(const UserEntry &entry);

// "users.alice.roots[0]".
std::string root_key(const UserEntry &entry, const RootSpec &root);

const char *to_string(SandboxMethod method);  // as the policy writes it
bool has_unit(SandboxMethod method) noexcept; // a session is a systemd unit, which has a control group and so limits
bool has_gate(SandboxMethod method) noexcept; // a session can have a network of its own out of which a gate leads
// The name of the agent account for `user` under this policy, from names alone. Where each user has one, no two users share it.
std::string agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as);

// The home of the agent of the user with this name in paths (short_name, common/host/identity.hpp).
std::string agents_home(const std::string &state_dir, const std::string &user);

// Names that systemd-sysusers accepts: no dot, and at most this many bytes.
constexpr std::size_t creatable_length = 31;
bool can_be_created(const std::string &account) noexcept;

// True for agent.user. If each user has an account, also true for names that begin like theirs, except those of people.
bool has_agents_name(const Policy &policy, const std::string &name);

// True if an agent runs as the account `name`, or would for some user. Such an account is never a user of pi, whatever its groups.
bool is_agent_account(const Policy &policy, const std::string &name);

} // namespace pi_agent

// The class of each path of the user's config directory: whether the host's or the agent's version counts.
#pragma once

#include "common/policy/rules.hpp"

#include <set>

namespace pi_agent {

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

// "~/projects" or "/srv/app", as written; a child with the user's rights resolves it (common/as_user/root_path.hpp).
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
    Rules rules; // all that levels can say, as one of them; the members above have its values, and the defaults of what it does not say
};

// Of its providers, those to which the session's gate has a route: all of them, or none.
const std::vector<ProviderRule> &routed_providers(const Policy &policy) noexcept;

// "users.alice" or "users.%devs": how diagnostics and explanations name an entry.
std::string entry_key(const UserEntry &entry);

// "users.alice.roots[0]".
std::string root_key(const UserEntry &entry, const RootSpec &root);

// As the policy writes it.
const char *to_string(SandboxMethod method);

// Whether a session is a systemd unit, which has a control group and so limits.
bool has_unit(SandboxMethod method) noexcept;

// Whether a session can have a network of its own out of which a gate leads.
bool has_gate(SandboxMethod method) noexcept;

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

// What each level of the policy can say of sessions, as types: the whole policy, a group, a user, a root.
#pragma once

#include "common/policy/host_rule.hpp"
#include "common/policy/limits.hpp"

#include <map>
#include <memory>

namespace pi_agent {

// A path that the policy names.
struct PolicyPath {
    std::string path;
    Position where;
    bool is_directory = false; // written with a '/' at its end, if that has a meaning
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
    std::string host;    // to which the key goes (common/policy/provider_table.hpp)
    Position where;      // of its name
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
    ProjectScope scope = ProjectScope::root; // as the policy says it
    ProjectOwnership ownership = ProjectOwnership::idmap;
    Protection protect;           // read-only inside, relative to the repository; unset: what git executes
    std::vector<PolicyPath> mask; // unreadable inside: a pattern of a name, or with '/' of a path
    bool aftermath = true;        // `pi` lists at the end what would run code outside later
    bool read_only = false;       // a session cannot change it
    // A start gave up what `scope` gives: the session shows the repository alone. What is masked and protected is so as if it showed all.
    bool repository_alone = false;

    [[nodiscard]] ProjectScope shown() const noexcept { return repository_alone ? ProjectScope::project : scope; }
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

// Where sessions run: on the host where pi is typed, or on a node of its cluster.
enum class PlacementEngine : std::uint8_t { none, slurm };

// A word of the policy that goes to another program.
struct PolicyWord {
    std::string text;
    Position where;
};

// If unset: the cluster's own default, or what common/decide/decision.hpp takes.
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
// to say, or has its default. The levels are merged by common/policy/policy_levels.hpp.
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
    PlacementPolicy placement;
    SaidPlaces places; // of what it says
};
// Of a user or root; without them it says nothing. A policy may have a hundred thousand of both.
using RulesPtr = std::shared_ptr<const Rules>;

} // namespace pi_agent

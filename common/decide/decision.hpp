// Whether the policy lets a user work here, and why: the entries that apply, where the session runs, and what holds for it.
#pragma once

#include "common/base/request.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

// --- Which entry of the policy applies to a caller: a pure function of policy and account.

// A root that the policy gives to the caller, before resolution.
struct GrantedRoot {
    RootSpec spec;
    std::optional<Gid> by_group; // set when a group entry granted it; its members keep that group inside
};

// What the policy grants to one caller. Made only by find_access_rules; with_roots_there leaves some of its roots out.
struct AccessRules {
    std::string entry; // "users.alice" or "users.%devs, users.%ops"
    Position where;
    std::vector<GrantedRoot> roots;
    std::string config_directory; // absolute
    std::string agent_account;
    Environment env;                         // the per-user layer
    std::optional<std::string> ssh_key = {}; // absolute
    std::optional<std::string> signing_key = {};
    EnvironmentPlaces env_where = {};
    Rules rules = {};                     // of the caller's groups, and their own over these
    std::vector<std::string> absent = {}; // roots that a start left out because they do not exist, as the policy writes them
};

// The caller may not use pi at all. `text` tells the user what to do.
struct NotAuthorised {
    std::string text;
};

// The real name of the agent account for `user` (agent_account_name). It has the user's uid instead of the name if systemd-sysusers cannot
// make that account and nobody else did, or if a user of the policy has that name. Looks the uid up if it is not given; a user who is not
// in the database gets the name as above.
std::string find_agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as,
                                    std::optional<Uid> uid = std::nullopt);

// Who the caller is to the policy (roots, config, run_as, keys) is what their own entry says; without one, what all their groups say
// together. What a session gets (env, and all that Rules has) comes from the groups, and the own entry wins over them. What two groups set
// differently is a PolicyError, unless the own entry says it.
std::variant<AccessRules, NotAuthorised> find_access_rules(const Policy &policy, const Account &caller, const std::string &policy_file);

// The rules with those roots alone that are there; `there` says it of each.
AccessRules with_roots_there(AccessRules rules, const std::vector<bool> &there);

// --- May this caller run the agent in this directory? A pure function. Wrapper and runner both call it, and only the runner's answer
// counts.

// A granted root after resolution: `path` is canonical.
struct RootCandidate {
    std::string path;
    std::optional<Gid> by_group;
    Position where;
    RulesPtr rules = {};     // of the root
    std::uint64_t mount = 0; // that holds it: its id
};

struct Allowed {
    std::size_t root;  // index of the candidate that contains the directory: the innermost one if roots nest
    std::string below; // path of the directory below that root, "" for the root itself; any bytes
};

struct Refused {
    std::string text;
};

// `cwd` is the canonical path of the working directory (any bytes).
std::variant<Allowed, Refused> decide(const Account &caller, const AccessRules &rules, const std::vector<RootCandidate> &roots,
                                      const std::string &cwd);

// --- What projects.mask hides.

// The pattern that masks `path` or a directory above it, as the search of a start finds it: nothing in a `.git` is masked. `path` is
// relative to where patterns with a '/' count from.
const PolicyPath *mask_over(const std::vector<PolicyPath> &mask, const std::string &path);

// For a working directory in what the policy masks, which no session shows. `top` holds it: the root, or what a session shows of that.
std::optional<Refused> masked_start(const ProjectsPolicy &projects, const std::string &top, const std::string &cwd);

// Groups of an agent's account through which it could become root, read what only administrators may, or have a user's rights: privileged
// ones, and those that the policy allows. By name.
std::vector<std::string> forbidden_groups_of(const Policy &policy, const Account &agent);

// The entries of the policy that apply to one caller, as one: those of their groups side by side, and their own over them.

// Made only by find_entries.
struct CallersEntries {
    struct OfGroup {
        const UserEntry *entry;
        Gid group;
    };
    const UserEntry *own = nullptr;
    std::vector<OfGroup> groups; // beside an own entry, only those that say something for sessions
};

CallersEntries find_entries(const Policy &policy, const Account &caller);

// What a caller with these entries is granted: the part of find_access_rules that knows of the caller's
// account its name, number and home alone.
std::variant<AccessRules, NotAuthorised> rules_by(const Policy &policy, const Account &caller, const CallersEntries &entries,
                                                  const std::string &policy_file);

// Whether sessions run in jobs of the cluster, and nowhere else.
bool has_jobs(const Policy &policy) noexcept;

// --- What holds for one session: the whole policy, then the caller's groups, the caller, the root, and last what the start itself asks.
// Pure functions: wrapper, runner and pi-agentctl all get the same answer, and only the runner's counts.

// As it holds for one caller, wherever they work. Throws PolicyError if their levels contradict each other.
Policy policy_for(Policy policy, const AccessRules &access);

// As it holds for that caller in one of their roots, the one that holds the working directory. Throws PolicyError if its network would give
// away the keys of providers.
Policy policy_in(Policy callers, const RootSpec &root);

// As it holds for one start that adds these hosts, of those that the policy lets its user add. Throws Failure(start_asks) for any other.
Policy granted(Policy policy, const std::vector<std::string> &hosts);

// Refuses ports of a session on the host's loopback where the policy gives none, or the session has the network of the host. Throws
// Failure(start_asks).
void require_ports(const Policy &policy);

// As it holds for one start that gives something up. It takes from what a session reaches and shows, and from nothing that the policy keeps
// out of it: what is masked or protected, and whose keys stay outside, is the same as without. Throws Failure(start_asks) if the policy
// gives less than the start would keep, and Failure(network_not_enforced) if the method cannot keep it from the rest.
Policy narrowed(Policy policy, const Narrowing &start);

// --- Whether a start would be, and what holds for it. Wrapper, runner and pi-agentctl decide with the same functions, each on what it
// found of the host itself; only the runner's answer counts.

// What a start was found to be about: the caller's roots that are there, in the order of their rules, and the working directory.
struct StartPlaces {
    std::vector<RootCandidate> roots;
    std::string cwd; // canonical; any bytes
    std::uint64_t mount = 0;
};

// What a start asks of its policy.
struct AskedOfStart {
    std::vector<std::string> allow;
    Narrowing narrowing;
    bool ports = false; // on the host's loopback
};
inline AskedOfStart asked_by(const Request &request)
{
    return {request.allow, request.narrowing, !request.ports.empty()};
}

// Whether sessions see the host's own tree there (runner/plan/host_view.hpp). Empty where nobody knows, as in the wrapper.
using IsShown = std::function<bool(const std::string &path)>;

// A start that would be.
struct Start {
    std::size_t root = 0; // which of the roots
    std::string below;    // the directory beneath it, "" for the root itself; any bytes
    Policy policy;        // as it holds for this start
};

// `callers` is the policy as it holds for the caller (policy_for), `rules` has the roots of `places`. Throws PolicyError and
// Failure(start_asks) where a policy or an option refuses.
std::variant<Start, Refused> decide_start(const Account &caller, const AccessRules &rules, Policy callers, const StartPlaces &places,
                                          const AskedOfStart &asked, const IsShown &is_shown);

// Refuses a root by where it lies: names that no unit holds, places of the system and of agents, and what others could replace while a
// session runs. Throws PolicyError(user_root).
void require_place_of_root(const RootCandidate &root, const AccessRules &rules, ProjectPaths paths, const IsShown &is_shown);

// Refuses a root that a group alone grants whose members control the host, and a user whose files would carry the group of root. Beside
// decide_start, because it looks up all groups of the first kind, and a directory service is slow: the wrapper leaves it to the runner.
void require_harmless_grant(const Account &caller, const std::string &root, std::optional<Gid> by_group);

// Where a user's agents can have written. What is there is content, not an instruction: no process that acts for the user follows a link
// that leads out (common/as_user/user_paths.hpp).

// A directory in which agents write: a root of the user, or the directory of all agents' state.
struct AgentPlace {
    std::string path; // canonical
    dev_t device;     // of the opened directory, the same by every other path to it
    ino_t inode;
};

struct AgentPlaces {
    std::vector<AgentPlace> places;
    ProjectScope scope = ProjectScope::root; // project: a session sees only a part of its root
    std::vector<PolicyPath> masks;           // what no session sees in its project
};

// With these roots only. `policy` is the caller's (policy_for). What one root masks counts as masked in all of them: here
// nobody knows which of them a session shows.
AgentPlaces places_of_state(const Policy &policy, const AccessRules &rules, const std::vector<AgentPlace> &roots = {});

} // namespace pi_agent

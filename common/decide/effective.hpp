// What holds for one session, and whether a start of it would be.
#pragma once

#include "common/base/request.hpp"
#include "common/decide/decision.hpp"

#include <functional>

namespace pi_agent {

// --- What holds for one session: the whole policy, then the caller's groups, the caller, the root, and last what the start itself asks.
// Pure functions: wrapper, runner and pi-agentctl all get the same answer, and only the runner's counts.

// As it holds for one caller, wherever they work. Throws PolicyError if their levels contradict each other.
Policy policy_for(Policy policy, const AccessRules &access);

// As it holds for that caller in one of their roots, the one that holds the working directory. Throws PolicyError if its network would give
// away the keys of providers.
Policy policy_in(Policy callers, const RootSpec &root);

// As it holds for one start that adds these hosts, of those that the policy lets its user add. Throws Failure(start_asks) for any other.
Policy granted(Policy policy, const std::vector<std::string> &hosts);

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
};

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

// The steps of the decision, in the order of a start.
#include "common/decide/start.hpp"

#include "common/base/files.hpp"
#include "common/decide/effective.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_levels.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

namespace pi_agent {

void require_harmless_grant(const Account &caller, const std::string &root, std::optional<Gid> by_group)
{
    if (by_group && is_privileged_group(*by_group))
        throw Failure(FailureKind::user_root, "the root " + escape_for_display(root) +
                                                  " is granted by a group whose members control the host (root, sudo, docker, …); ask "
                                                  "the administrator to grant it to users, or to another group");
    if (caller.gid.value() == 0)
        throw Failure(FailureKind::caller, "denied: the primary group of " + escape_for_display(caller.name) +
                                               " is root's group, and the agent's files would belong to it; ask the administrator to give "
                                               "that account another primary group");
}

// The kernel reports the path, after the reader opened the root. A rename in between can change it, so it is judged here and not only by
// the reader. The unit names only the root, and only at its own path. Below the host's own trees, which the agent sees, systemd resolves
// that path again while the session runs, and only root may be able to exchange a component there (a symlink there once made root run the
// project's own program).
void require_place_of_root(const RootCandidate &root, const AccessRules &rules, ProjectPaths paths, const IsShown &is_shown)
{
    const auto refuse = [&](const std::string &problem, const std::string &remedy) {
        throw PolicyError(
            {Diagnostic{root.where, rules.entry + ".roots", "the root leads to " + escape_for_display(root.path) + ", " + problem, remedy}},
            FailureKind::user_root);
    };
    if (const auto problem = problem_of_root_in_unit(root.path); problem && paths == ProjectPaths::host && defence_is_on("root-alphabet"))
        refuse("which " + problem->text, problem->remedy);
    if (!defence_is_on("root-place")) return;
    if (const auto problem = problem_of_place(root.path)) refuse("which " + problem->text, problem->remedy);
    // Every root of a policy knows where its state is, and this is one of them.
    if (const auto &state_dir = rules.roots.front().spec.state_dir; !state_dir.empty())
        if (const auto problem = problem_beside_state(root.path, state_dir)) refuse("which " + problem->text, problem->remedy);
    if (paths == ProjectPaths::alias || !is_shown || !is_shown(root.path)) return; // under an alias, the unit does not name it
    try {
        open_trusted(root.path.substr(0, root.path.rfind('/')), O_PATH | O_DIRECTORY, "directory that holds a root");
    } catch (const Failure &failure) {
        refuse(std::string("which others could replace while a session runs: ") + failure.what(), "move it below /srv or a home");
    }
}

std::variant<Start, Refused> decide_start(const Account &caller, const AccessRules &rules, Policy callers, const StartPlaces &places,
                                          const AskedOfStart &asked, const IsShown &is_shown)
{
    auto decision = decide(caller, rules, places.roots, places.cwd);
    if (auto *refused = std::get_if<Refused>(&decision)) return *refused;
    auto &allowed = std::get<Allowed>(decision);
    const RootCandidate &root = places.roots[allowed.root];
    Start start{allowed.root, std::move(allowed.below), std::move(callers)};
    if (defence_is_on("root-rules")) start.policy = policy_in(std::move(start.policy), rules.roots[start.root].spec);
    start.policy = granted(std::move(start.policy), asked.allow);
    if (defence_is_on("narrowed-starts")) start.policy = narrowed(std::move(start.policy), asked.narrowing);
    if (root.mount != places.mount && defence_is_on("cwd-mount")) return on_other_mount(root, places.cwd);
    require_place_of_root(root, rules, start.policy.projects.paths, is_shown);
    if (const auto refused = masked_start(start.policy.projects, root.path, places.cwd)) throw Failure(FailureKind::masked, refused->text);
    return start;
}

AgentPlaces places_of_state(const Policy &policy, const AccessRules &rules, const std::vector<AgentPlace> &roots)
{
    AgentPlaces places{roots, policy.projects.shown(), policy.projects.mask};
    for (const auto &granted : rules.roots) {
        const Rules &own = rules_of(granted.spec.rules);
        if (own.scope == ProjectScope::project) places.scope = ProjectScope::project;
        if (own.mask) places.masks.insert(places.masks.end(), own.mask->begin(), own.mask->end());
    }
    struct stat facts {};
    if (stat(policy.agent.state_dir.c_str(), &facts) == 0)
        places.places.push_back({policy.agent.state_dir, facts.st_dev, facts.st_ino});
    else
        require_gone("examining " + policy.agent.state_dir); // no agent has written yet
    return places;
}

} // namespace pi_agent

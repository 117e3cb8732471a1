// What holds for one session, and whether a start of it would be.
#include "common/decide/decision.hpp"

#include "common/base/files.hpp"

#include "common/host/trusted_file.hpp"
#include "common/policy/policy_sections.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>

namespace pi_agent {

// --- Lays one level over the other.

namespace {

Policy laid_over(Policy outer, const Rules &inner)
{
    if (inner.places.empty()) return outer;
    Problems problems;
    lay_over(outer, inner, problems);
    problems.throw_if_any();
    return outer;
}

// Of two ranges that share an address, one holds the other.
std::vector<IpRange> in_both(const std::vector<IpRange> &some, const std::vector<IpRange> &others)
{
    std::vector<IpRange> both;
    for (const auto &one : some)
        for (const auto &other : others)
            if (overlap(one, other)) both.push_back(one.prefix > other.prefix ? one : other);
    return both;
}

// Of rules by name, those that lead to the host's loopback. Providers are elsewhere.
NetworkPolicy with_loopback_hosts_alone(const NetworkPolicy &network, const std::string &option)
{
    NetworkPolicy left{NetworkMode::hosts, {}, {option}};
    std::copy_if(network.hosts.begin(), network.hosts.end(), std::back_inserter(left.hosts), is_loopback);
    left.reaches_providers = false;
    return left;
}

NetworkPolicy without_all_but_loopback(const Policy &policy, const std::string &option)
{
    const auto &network = policy.network;
    if (network.mode == NetworkMode::loopback) return network;
    if (network.mode == NetworkMode::hosts) {
        if (auto left = with_loopback_hosts_alone(network, option); !left.hosts.empty()) return left;
        throw Failure(FailureKind::start_asks, "denied: " + option + " asks for more than the policy gives: its network (" +
                                                   to_string(network.where) +
                                                   ") names no host on loopback; leave the option out, or say none");
    }
    if (network.mode == NetworkMode::full && policy.sandbox.method == SandboxMethod::bwrap)
        throw Failure(FailureKind::network_not_enforced,
                      option + ": the sandbox method bwrap cannot filter addresses; say --pi-agent-network=none");
    NetworkPolicy left{network.mode == NetworkMode::full ? NetworkMode::loopback : NetworkMode::listed, loopback_ranges(), {option}};
    if (network.mode != NetworkMode::full) left.allowed = in_both(network.allowed, loopback_ranges());
    if (left.allowed.empty())
        throw Failure(FailureKind::start_asks, "denied: " + option + " asks for more than the policy gives: its network (" +
                                                   to_string(network.where) + ") allows no loopback; leave the option out, or say none");
    return left;
}

// No list of the policy is as long, but those of several groups can be together.
Diagnostic too_many_hosts(const Policy &policy)
{
    const auto &network = policy.network;
    return {network.where, place_of_key(policy.rules, "network"),
            fmt::format("the lists of the groups here have {} rules together, and a session has {} at most", network.hosts.size(),
                        most_host_rules),
            "use a wildcard where names have the same end, or give one list to these users in entries of their own"};
}

std::string place_of(const NetworkPolicy &network)
{
    return network.where.file.empty() ? "full, the default" : to_string(network.where);
}

std::string grants_of(const NetworkPolicy &network)
{
    std::string texts;
    for (const auto &rule : network.may_grant)
        texts += (texts.empty() ? "" : ", ") + to_string(rule);
    return texts;
}

} // namespace

Policy policy_for(Policy policy, const AccessRules &access)
{
    return laid_over(std::move(policy), access.rules);
}

Policy policy_in(Policy callers, const RootSpec &root)
{
    Policy policy = laid_over(std::move(callers), rules_of(root.rules));
    if (const auto problem = problem_of_providers(policy.network, policy.providers, policy.rules)) throw PolicyError({*problem});
    if (policy.network.hosts.size() > most_host_rules) throw PolicyError({too_many_hosts(policy)});
    return policy;
}

Policy granted(Policy policy, const std::vector<std::string> &hosts)
{
    auto &network = policy.network;
    for (const auto &text : hosts) {
        const std::string asked = "denied: --pi-agent-allow " + escape_for_display(text);
        auto parsed = parse_host_rule(text);
        if (const auto *problem = std::get_if<TextProblem>(&parsed))
            throw Failure(FailureKind::start_asks, asked + " " + problem->text + "; " + problem->remedy);
        auto rule = std::get<HostRule>(std::move(parsed));
        if (network.mode != NetworkMode::hosts)
            throw Failure(FailureKind::start_asks,
                          asked + " has no meaning here: the network of this session (" + place_of(network) + ") is not a list of hosts");
        if (rule_for(network.hosts, rule) != nullptr) continue;
        if (rule_for(network.may_grant, rule) == nullptr && defence_is_on("granted-hosts"))
            throw Failure(FailureKind::start_asks, asked + " is not among what the policy lets you add (" + place_of(network) +
                                                       ", may_grant: " + (network.may_grant.empty() ? "nothing" : grants_of(network)) +
                                                       "); ask the administrator");
        rule.where = {"--pi-agent-allow"};
        network.hosts.push_back(std::move(rule));
    }
    if (network.hosts.size() > most_host_rules)
        throw Failure(FailureKind::start_asks,
                      fmt::format("denied: this session would have {} rules with hosts, and the most is {}; say fewer "
                                  "times --pi-agent-allow, or ask the administrator",
                                  network.hosts.size(), most_host_rules));
    return policy;
}

Policy narrowed(Policy policy, const Narrowing &start)
{
    if (start.network == LeftNetwork::none && policy.network.mode != NetworkMode::none)
        policy.network = {NetworkMode::none, {}, {"--pi-agent-network=none"}};
    if (start.network == LeftNetwork::loopback) policy.network = without_all_but_loopback(policy, "--pi-agent-network=loopback");
    if (start.read_only) policy.projects.read_only = true;
    if (start.project_only) policy.projects.repository_alone = policy.projects.scope == ProjectScope::root;
    return policy;
}

// --- The steps of the decision, in the order of a start.

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
    if (root.mount != places.mount && defence_is_on("cwd-mount"))
        return Refused{"denied: " + escape_for_display(places.cwd) + " lies on another file system, mounted inside the root " +
                       escape_for_display(root.path) +
                       ", which the agent does not see; ask the administrator to make it a root of its own"};
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

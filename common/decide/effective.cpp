// Lays one level over the other.
#include "common/decide/effective.hpp"

#include "common/policy/policy_levels.hpp"

#include <utility>

namespace pi_agent {

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

NetworkPolicy without_all_but_loopback(const Policy &policy, const std::string &option)
{
    const auto &network = policy.network;
    if (network.mode == NetworkMode::loopback) return network;
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

} // namespace

Policy policy_for(Policy policy, const AccessRules &access)
{
    return laid_over(std::move(policy), access.rules);
}

Policy policy_in(Policy callers, const RootSpec &root)
{
    return laid_over(std::move(callers), rules_of(root.rules));
}

Policy narrowed(Policy policy, const Narrowing &start)
{
    if (start.network == LeftNetwork::none && policy.network.mode != NetworkMode::none)
        policy.network = {NetworkMode::none, {}, {"--pi-agent-network=none"}};
    if (start.network == LeftNetwork::loopback) policy.network = without_all_but_loopback(policy, "--pi-agent-network=loopback");
    if (start.read_only) policy.projects.read_only = true;
    if (start.project_only) policy.projects.scope = ProjectScope::project;
    return policy;
}

} // namespace pi_agent

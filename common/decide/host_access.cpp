// Finds the rule that decides about a host.
#include "common/decide/host_access.hpp"

#include "common/policy/ip_range.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

HostAccess in_loopback(const NetworkPolicy &network, const HostRule &asked)
{
    if (is_loopback(asked)) return {Reach::yes, "the host's loopback is reached", "network", network.where};
    return {Reach::no, "only the host's loopback is reached", "network", network.where};
}

HostAccess in_list(const NetworkPolicy &network, const HostRule &asked)
{
    if (!is_address(asked) && !is_loopback(asked))
        return {Reach::unknown, "a list of addresses knows no names: what the name leads to decides, if a name server is in the list",
                "network", network.where};
    const bool is_v6 = asked.host.find(':') != std::string::npos;
    const std::string address = !is_address(asked) ? "127.0.0.1/32" : asked.host + (is_v6 ? "/128" : "/32");
    const auto parsed = parse_ip_range(address);
    const auto *one = std::get_if<IpRange>(&parsed);
    for (const auto &range : network.allowed)
        if (one != nullptr && overlap(range, *one))
            return {Reach::yes, "the list has it (" + to_string(range) + ")", "network", network.where};
    return {Reach::no, "the list does not have it", "network", network.where};
}

HostAccess among_hosts(const Policy &policy, const HostRule &asked)
{
    const auto &network = policy.network;
    if (const auto *rule = rule_for(network.hosts, asked))
        return {Reach::yes, "a rule names it (" + to_string(*rule) + ")", "network.hosts", rule->where};
    const auto provider = std::find_if(policy.providers.begin(), policy.providers.end(),
                                       [&](const ProviderRule &one) { return one.host == asked.host && asked.port == https_port; });
    if (provider != policy.providers.end())
        return {Reach::yes, "the agent's requests to " + provider->name + " go there with a key from outside, and nothing else does",
                "providers", provider->where};
    if (const auto *grant = rule_for(network.may_grant, asked))
        return {Reach::no, "no rule names it, but its user may add it: pi --pi-agent-allow " + to_string(asked), "network.hosts",
                grant->where, true};
    const auto other_port = std::find_if(network.hosts.begin(), network.hosts.end(), [&](HostRule rule) {
        rule.port = asked.port;
        return covers(rule, asked);
    });
    if (other_port != network.hosts.end())
        return {Reach::no, "a rule names this host, but not this port (" + to_string(*other_port) + ")", "network.hosts",
                other_port->where};
    return {Reach::no, "no rule names it", "network.hosts", network.where};
}

} // namespace

HostAccess host_access(const Policy &policy, const HostRule &asked)
{
    const auto &network = policy.network;
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return {Reach::no, "the session has a network of its own, with nothing in it but a loopback", "network", network.where};
    case NetworkMode::loopback:
        return in_loopback(network, asked);
    case NetworkMode::listed:
        return in_list(network, asked);
    case NetworkMode::hosts:
        return among_hosts(policy, asked);
    }
    return {Reach::yes, "the session has the host's network, without restriction", "network", network.where};
}

} // namespace pi_agent

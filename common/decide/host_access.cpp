// Reads what people ask about, and finds the rule that decides about it.
#include "common/decide/explained.hpp"

#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

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

// What `pi` takes as well: some hosts of a range can be no rule of their own.
const HostRule *grant_for(const NetworkPolicy &network, const HostRule &asked)
{
    return std::holds_alternative<HostRule>(parse_host_rule(to_string(asked))) ? rule_for(network.may_grant, asked) : nullptr;
}

HostAccess among_hosts(const NetworkPolicy &network, const std::vector<ProviderRule> &providers, const HostRule &asked)
{
    const HostMatch match = find_rule(network.hosts, asked);
    const std::string way = goes_by_proxy(network, asked) ? ", by the proxy " + host_and_port(network.via->host, network.via->port) : "";
    if (match.rule != nullptr)
        return {Reach::yes, "a rule names it (" + to_string(*match.rule) + ")" + way, "network.hosts", match.rule->where};
    const auto provider = std::find_if(providers.begin(), providers.end(),
                                       [&](const ProviderRule &one) { return one.host == asked.host && asked.port == https_port; });
    if (provider != providers.end())
        return {Reach::yes, "the agent's requests to " + provider->name + " go there with a key from outside, and nothing else does",
                "providers", provider->where};
    if (const auto *grant = grant_for(network, asked))
        return {Reach::no, "no rule names it, but its user may add it: pi --pi-agent-allow " + to_string(asked), "network.hosts",
                grant->where, true};
    if (match.other_port != nullptr)
        return {Reach::no, "a rule names this host, but not this port (" + to_string(*match.other_port) + ")", "network.hosts",
                match.other_port->where};
    return {Reach::no, "no rule names it", "network.hosts", network.where};
}

struct Scheme {
    std::string_view name;
    std::uint16_t port;
};
constexpr Scheme schemes[] = {{"https", https_port}, {"http", 80}, {"wss", https_port}, {"ws", 80}, {"ssh", 22}};

} // namespace

std::optional<HostRule> parse_host_question(const std::string &text)
{
    std::optional<std::uint16_t> port = https_port;
    std::string place = text;
    if (const auto end = text.find("://"); end != std::string::npos) {
        const auto *scheme = std::find_if(std::begin(schemes), std::end(schemes),
                                          [&](const Scheme &one) { return one.name == lower_case(text.substr(0, end)); });
        port = scheme == std::end(schemes) ? std::nullopt : std::optional(scheme->port);
        place = text.substr(end + 3, text.find_first_of("/?#", end + 3) - (end + 3));
        place.erase(0, place.rfind('@') + 1); // npos + 1 is 0
    }
    const auto parts = parts_of_host(place);
    if (!parts) return std::nullopt;
    if (parts->port) port = parse_port(*parts->port);
    const auto host = read_one_host(parts->host);
    return host && port ? std::optional(HostRule{*host, *port}) : std::nullopt;
}

bool goes_by_proxy(const NetworkPolicy &network, const HostRule &asked)
{
    return network.via && !is_loopback(asked) && rule_for(network.direct, {asked.host}) == nullptr;
}

HostAccess host_access(const NetworkPolicy &network, const std::vector<ProviderRule> &providers, const HostRule &asked)
{
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return {Reach::no, "the session has a network of its own, with nothing in it but a loopback", "network", network.where};
    case NetworkMode::loopback:
        if (is_loopback(asked)) return {Reach::yes, "the host's loopback is reached", "network", network.where};
        return {Reach::no, "only the host's loopback is reached", "network", network.where};
    case NetworkMode::listed:
        return in_list(network, asked);
    case NetworkMode::hosts:
        return among_hosts(network, providers, asked);
    }
    return {Reach::yes, "the session has the host's network, without restriction", "network", network.where};
}

std::string hint_of_file(const std::string &question, const HostRule &taken_for)
{
    if (question.find(':') != std::string::npos || is_address(taken_for) || taken_for.host == "localhost") return "";
    return "  a file:    there is none of this name; for one, ask with ./" + escape_for_display(question) + "\n";
}

// The launcher connects in the session's network: only where that is not the host's, whose services know the agent's account by its uid.
void require_ports(const Policy &policy)
{
    const NetworkMode mode = policy.network.mode;
    if (!policy.wrapper.ports && defence_is_on("granted-ports"))
        throw Failure(FailureKind::start_asks,
                      "denied: --pi-agent-port: the policy lets you have no port of a session (wrapper.ports); ask the administrator");
    if (mode != NetworkMode::none && mode != NetworkMode::hosts && defence_is_on("ports-of-own-network"))
        throw Failure(FailureKind::start_asks, "denied: --pi-agent-port has no meaning here: this session has no network of its own (" +
                                                   place_of_key(policy.rules, "network") +
                                                   "), so its servers listen on this host; leave the option out");
}

} // namespace pi_agent

// Reading the key `network` of a policy.
#include "common/policy/policy_network.hpp"

namespace pi_agent {

namespace {

std::optional<NetworkPolicy> read_mode(const PolicyValue &value, Problems &problems)
{
    const bool is_text = value.node.kind == YamlNode::Kind::scalar;
    if (is_text && std::holds_alternative<IpRange>(parse_ip_range(value.node.text))) {
        problems.add(value.where, value.key, quote(value.node.text) + " is a range of addresses without a list around it",
                     "write [\"" + value.node.text + "\"]");
        return std::nullopt;
    }
    const auto mode = read_choice(value, problems);
    if (!mode) return std::nullopt;
    if (*mode == "full") return NetworkPolicy{};
    if (*mode == "none") return NetworkPolicy{NetworkMode::none, {}, value.where};
    return NetworkPolicy{NetworkMode::loopback, loopback_ranges(), value.where};
}

} // namespace

std::optional<NetworkPolicy> read_network(const PolicyValue &value, Problems &problems)
{
    if (value.node.kind != YamlNode::Kind::sequence) return read_mode(value, problems);
    const auto items = read_items(value, problems);
    NetworkPolicy network{NetworkMode::listed, {}, value.where};
    if (items->empty()) problems.add(value.where, value.key, "is an empty list", "say 'network: none', or name ranges of addresses");
    for (const auto &item : *items) {
        const auto text = read_line(item, problems);
        if (!text) continue;
        auto parsed = parse_ip_range(*text);
        if (const auto *problem = std::get_if<RangeProblem>(&parsed))
            problems.add(item.where, item.key, quote(*text) + " " + problem->text, problem->remedy);
        else
            network.allowed.push_back(std::get<IpRange>(std::move(parsed)));
    }
    return network;
}

} // namespace pi_agent

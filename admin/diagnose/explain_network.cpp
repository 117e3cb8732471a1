// What a session reaches, and whose keys stay outside of it.
#include "admin/diagnose/explain.hpp"

#include "common/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

template <typename Item>
std::vector<std::string> as_texts(const std::vector<Item> &items)
{
    std::vector<std::string> texts;
    for (const auto &item : items)
        texts.push_back(to_string(item));
    return texts;
}

template <typename Item>
std::string joined_rules(const std::vector<Item> &items)
{
    std::string text;
    for (const auto &item : items)
        text += (text.empty() ? "" : ", ") + to_string(item);
    return text;
}

std::string hosts_text(const NetworkPolicy &network)
{
    const std::string may_add =
        network.may_grant.empty() ? ""
                                  : fmt::format("          its user may add (pi --pi-agent-allow): {}\n", joined_rules(network.may_grant));
    return fmt::format("network:  {} ({}), and a loopback of its own;\n"
                       "          every other host is refused at once\n{}",
                       network.hosts.empty() ? "no host" : "these hosts: " + joined_rules(network.hosts), to_string(network.where),
                       may_add);
}

std::string providers_text(const Policy &policy)
{
    std::string text;
    const char *route = routed_providers(policy).empty() ? ", and this network does not lead there" : "";
    for (const auto &provider : policy.providers)
        text += fmt::format("{}{} at {}: its key stays outside{} ({})\n", text.empty() ? "keys:     " : "          ", provider.name,
                            provider.host, route, to_string(provider.where));
    return text;
}

std::string mode_text(const NetworkPolicy &network)
{
    const std::string where = to_string(network.where);
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return fmt::format("network:  none ({}): a loopback of its own, which nobody else reaches;\n"
                           "          its model, too, is out of reach unless it runs in the session\n",
                           where);
    case NetworkMode::loopback:
        return fmt::format("network:  loopback ({}): {} of this host, in both directions;\n"
                           "          a proxy, a name server or a model that listens there is reached\n",
                           where, joined_rules(network.allowed));
    case NetworkMode::listed:
        return fmt::format("network:  only {} ({}), in both directions;\n"
                           "          name servers, loopback and the model's host only as far as they are among them\n",
                           joined_rules(network.allowed), where);
    case NetworkMode::hosts:
        return hosts_text(network);
    }
    return "network:  full: the host's, without restriction (network)\n";
}

} // namespace

std::string network_text(const Policy &policy)
{
    return mode_text(policy.network) + providers_text(policy);
}

void add_network(const Policy &policy, nlohmann::json &json)
{
    constexpr const char *modes[] = {"full", "loopback", "none", "list", "hosts"};
    const auto &network = policy.network;
    json["network"] = {{"mode", modes[static_cast<int>(network.mode)]}, {"allowed", as_texts(network.allowed)}};
    if (network.mode == NetworkMode::hosts)
        json["network"].update({{"hosts", as_texts(network.hosts)}, {"may_grant", as_texts(network.may_grant)}});
    const bool reaches = !routed_providers(policy).empty();
    auto providers = nlohmann::json::array();
    for (const auto &provider : policy.providers)
        providers.push_back({{"name", provider.name},
                             {"host", provider.host},
                             {"key_file", provider.key_file.path},
                             {"reached", reaches},
                             {"where", to_string(provider.where)}});
    json["providers"] = std::move(providers);
}

} // namespace pi_agent

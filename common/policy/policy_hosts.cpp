// Reads rules by name: `network: {hosts: […]}` and `providers:`.
#include "common/policy/policy_sections.hpp"

#include "common/policy/policy_paths.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

std::vector<HostRule> read_host_rules(const PolicyValue &list)
{
    std::vector<HostRule> rules;
    const auto items = read_items(list);
    if (!items) return rules;
    if (items->size() > most_host_rules)
        list.report(fmt::format("has {} rules, and a session has {} at most", items->size(), most_host_rules),
                    "name all hosts below a name at once, as in \"*.npmjs.org\"");
    for (const auto &item : *items) {
        const auto text = read_line(item);
        if (!text) continue;
        auto parsed = parse_host_rule(*text);
        if (const auto *problem = std::get_if<HostProblem>(&parsed)) {
            item.refuse(*text, *problem);
            continue;
        }
        rules.push_back(std::get<HostRule>(std::move(parsed)));
        rules.back().where = item.where;
    }
    return rules;
}

// A name of a host alone: the gate speaks HTTPS to it.
std::optional<std::string> read_provider_host(const PolicyValue &value)
{
    const auto text = read_line(value);
    if (!text) return std::nullopt;
    auto parsed = parse_host_rule(*text);
    if (const auto *problem = std::get_if<HostProblem>(&parsed)) {
        value.refuse(*text, *problem);
        return std::nullopt;
    }
    auto rule = std::get<HostRule>(std::move(parsed));
    if (!is_wildcard(rule) && !is_address(rule) && rule.port == https_port) return rule.host;
    value.report(quote(*text) + " is not one name without a port",
                 "name the host alone: the key goes to it by HTTPS, whose certificate has that name");
    return std::nullopt;
}

constexpr std::array<std::string_view, 6> brokered = {"anthropic",     "openai", "google", "openrouter", "azure-openai-responses",
                                                      "amazon-bedrock"};
// Each customer of these has a host of their own.
constexpr std::string_view without_host = "azure-openai-responses amazon-bedrock";

std::optional<ProviderRule> read_provider(const PolicyValue &section)
{
    const std::string &name = section.yaml->key;
    ProviderRule provider{name, {}, {}, section.yaml->where};
    if (std::find(brokered.begin(), brokered.end(), name) == brokered.end()) {
        section.at_its_name().report("the gate knows no provider " + quote(name),
                                     fmt::format("name one of {}; for another one, name its host in network.hosts, and put the key into "
                                                 "env_files, where sessions can read it",
                                                 fmt::join(brokered, ", ")));
        return std::nullopt;
    }
    const auto read_key_file = [&](const PolicyValue &value) {
        if (auto path = read_path(value, problem_of_managed_file)) provider.key_file = {std::move(*path), value.where};
    };
    bool has_key_file = false;
    bool has_host = false;
    read_section(section, {{"key_file",
                            [&](const PolicyValue &value) {
                                has_key_file = true;
                                read_key_file(value);
                            }},
                           {"host", [&](const PolicyValue &value) {
                                has_host = true;
                                provider.host = read_provider_host(value).value_or("");
                            }}});
    if (!section.is(YamlNode::Kind::mapping)) return std::nullopt;
    if (!has_key_file)
        section.at_its_name().report("has no key_file",
                                     "name the file with its key, which only root can read: {key_file: /etc/pi-agent/" + name + ".key}");
    if (!has_host && has_word(without_host, name))
        section.at_its_name().report("has no host, and each customer of this provider has another", "name yours, as in {host: …}");
    return provider;
}

} // namespace

std::optional<NetworkPolicy> read_hosts(const PolicyValue &section)
{
    NetworkPolicy network{NetworkMode::hosts, {}, section.where};
    read_section(section, {{"hosts", [&](const PolicyValue &value) { network.hosts = read_host_rules(value); }},
                           {"may_grant", [&](const PolicyValue &value) { network.may_grant = read_host_rules(value); }}});
    if (section.node.entries.empty())
        section.report("is an empty mapping", "say 'network: none', or name hosts: {hosts: [github.com, \"*.npmjs.org\"]}");
    return network;
}

std::optional<std::vector<ProviderRule>> read_providers(const PolicyValue &section)
{
    const auto entries = read_entries(section);
    if (!entries) return std::nullopt;
    std::vector<ProviderRule> providers;
    for (const auto &entry : *entries)
        if (auto provider = read_provider(entry)) providers.push_back(std::move(*provider));
    return providers;
}

} // namespace pi_agent

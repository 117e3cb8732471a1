// Reads rules by name: `network: {hosts: […]}` and `providers:`.
#include "common/policy/policy_sections.hpp"

#include "common/policy/policy_paths.hpp"
#include "common/policy/provider_table.hpp"

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
                    "name all hosts below a name at once, as in \"*.example.org\"");
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

void report_unknown_provider(const PolicyValue &section)
{
    std::vector<std::string_view> names;
    for (const auto &one : providers_with_gate())
        names.push_back(one.name);
    section.at_its_name().report("the gate does not know the provider " + quote(section.yaml->key) + did_you_mean(section.yaml->key, names),
                                 fmt::format("name one of {}; for another one, name its host in network.hosts, and put the key into "
                                             "env_files, where sessions can read it",
                                             fmt::join(names, ", ")));
}

// The host that its key goes to: what the policy says, or what the table has.
std::optional<std::string> find_host(const Provider &known, const std::optional<std::string> &said, const PolicyValue &at)
{
    auto found = host_of_provider(known, said.value_or(""));
    if (!found.problem) return std::move(found.host);
    if (said)
        at.report(quote(*said) + " is not a host of this provider, which " + *found.problem, "correct it, or remove the key");
    else
        at.at_its_name().report(*found.problem, "say it as {key_file: ..., host: ...}");
    return std::nullopt;
}

std::optional<ProviderRule> read_provider(const PolicyValue &section)
{
    const std::string &name = section.yaml->key;
    const Provider *known = find_provider(name);
    ProviderRule provider{name, {}, {}, section.yaml->where};
    bool has_key_file = !section.is(YamlNode::Kind::mapping); // then the wrong type is what to report
    bool has_host = has_key_file;
    const auto read_key_file = [&](const PolicyValue &value) {
        has_key_file = true;
        if (auto path = read_path(value, problem_of_managed_file)) provider.key_file = {std::move(*path), value.where};
    };
    const auto read_host = [&](const PolicyValue &value) {
        has_host = true;
        if (const auto said = read_line(value); said && known != nullptr) provider.host = find_host(*known, said, value).value_or("");
    };
    read_section(section, {{"key_file", read_key_file}, {"host", read_host}});
    if (!has_key_file)
        section.at_its_name().report(
            "has no key_file",
            fmt::format("name the file with its key, which only root can read: {{key_file: /etc/pi-agent/{}.key}}", name));
    if (known == nullptr) report_unknown_provider(section);
    if (known != nullptr && !has_host) provider.host = find_host(*known, std::nullopt, section).value_or("");
    return provider.host.empty() || provider.key_file.path.empty() ? std::nullopt : std::optional(provider);
}

} // namespace

std::optional<NetworkPolicy> read_hosts(const PolicyValue &section)
{
    NetworkPolicy network{NetworkMode::hosts, {}, section.where};
    read_section(section, {{"hosts", [&](const PolicyValue &value) { network.hosts = read_host_rules(value); }},
                           {"may_grant", [&](const PolicyValue &value) { network.may_grant = read_host_rules(value); }}});
    if (section.node.entries.empty())
        section.report("is an empty mapping", "say 'network: none', or name hosts: {hosts: [github.com, \"*.example.org\"]}");
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

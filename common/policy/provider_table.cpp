// The providers of models, and the policy's network and providers: reads and checks them.
#include "common/policy/policy_sections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

constexpr std::pair<std::string_view, std::string_view> key_variables[] = {
#include "common/key_variables.inc"
};

constexpr std::string_view setup_token = "sk-ant-oat"; // what pi looks for, too

bool is_like(std::string_view host, std::string_view pattern) noexcept
{
    const std::size_t star = pattern.find('*');
    if (host.size() < pattern.size() || !host.starts_with(pattern.substr(0, star)) || !host.ends_with(pattern.substr(star + 1)))
        return false;
    constexpr std::string_view label_bytes = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const auto label = host.substr(star, host.size() - pattern.size() + 1);
    return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
           label.find_first_not_of(label_bytes) == std::string_view::npos;
}

// The items of a list that can be understood, with their places where they have one.
template <typename Item>
std::vector<Item> read_parsed(const PolicyValue &list, std::variant<Item, TextProblem> (*parse)(const std::string &))
{
    std::vector<Item> parsed;
    for (const auto &item : read_items(list).value_or(std::vector<PolicyValue>())) {
        const auto text = read_line(item);
        if (!text) continue;
        auto one = parse(*text);
        if (const auto *problem = std::get_if<TextProblem>(&one)) {
            item.refuse(*text, *problem);
            continue;
        }
        parsed.push_back(std::get<Item>(std::move(one)));
        if constexpr (requires { parsed.back().where; }) parsed.back().where = item.where;
    }
    return parsed;
}

std::vector<HostRule> read_host_rules(const PolicyValue &list)
{
    if (const auto size = list.node.items.size(); size > most_host_rules)
        list.report(fmt::format("has {} rules, and a session has {} at most", size, most_host_rules),
                    "name all hosts below a name at once, as in \"*.example.org\"");
    return read_parsed(list, parse_host_rule);
}

// Never shows the text, which may have a password in it.
std::optional<HostRule> read_proxy(const PolicyValue &value)
{
    const auto text = read_line(value);
    if (!text) return std::nullopt;
    auto parsed = parse_proxy(*text);
    if (const auto *problem = std::get_if<TextProblem>(&parsed)) value.report(problem->text, problem->remedy);
    auto *proxy = std::get_if<HostRule>(&parsed);
    if (proxy == nullptr) return std::nullopt;
    proxy->where = value.where;
    return std::move(*proxy);
}

// `network: {hosts: […], may_grant: […], via: http://…}`
std::optional<NetworkPolicy> read_hosts(const PolicyValue &section)
{
    NetworkPolicy network{NetworkMode::hosts, {}, section.where};
    bool has_via = false, needs_via = false;
    const auto read_login_file = [&](const PolicyValue &value) {
        needs_via = true;
        if (auto path = read_path(value, problem_of_managed_file)) network.via_login_file = {std::move(*path), value.where};
    };
    read_section(section, {{"hosts", [&](const PolicyValue &value) { network.hosts = read_host_rules(value); }},
                           {"may_grant", [&](const PolicyValue &value) { network.may_grant = read_host_rules(value); }},
                           {"via", [&](const PolicyValue &value) { has_via = true, network.via = read_proxy(value); }},
                           {"direct", [&](const PolicyValue &value) { needs_via = true, network.direct = read_host_rules(value); }},
                           {"via_login_file", read_login_file}});
    if (needs_via && !has_via) section.report("names no proxy, and direct and via_login_file are about one", "add via, or remove them");
    for (const auto &rule : network.direct)
        if (rule.port != https_port)
            section.problems.add(rule.where, section.key + ".direct", to_string(rule) + " has a port, and all ports of a host go direct",
                                 "name the host alone");
    if (section.node.entries.empty())
        section.report("is an empty mapping", "say 'network: none', or name hosts: {hosts: [github.com, \"*.example.org\"]}");
    return network;
}

std::optional<NetworkPolicy> read_mode(const PolicyValue &value)
{
    const std::string &text = value.node.text;
    if (value.is(YamlNode::Kind::scalar) && std::holds_alternative<IpRange>(parse_ip_range(text))) {
        value.refuse(text, TextProblem{"is a range of addresses without a list around it", "write [\"" + text + "\"]"});
        return std::nullopt;
    }
    const auto mode = read_choice_of<NetworkMode>(value);
    if (!mode) return std::nullopt;
    return NetworkPolicy{*mode, *mode == NetworkMode::loopback ? loopback_ranges() : std::vector<IpRange>(), value.where};
}

// What one level says, and the method cannot honour: nothing is ever dropped in silence.
void refuse_what_method_cannot(const SandboxPolicy &sandbox, const Rules &rules, Problems &problems)
{
    if (problems.has("sandbox.method")) return;
    const auto refuse = [&](const Position &where, const char *key, const char *problem, const char *remedy) {
        problems.add(where, place_of_key(rules, key),
                     fmt::format("sandbox.method {} ({}) {}", to_string(sandbox.method), to_string(sandbox.where), problem), remedy);
    };
    const bool is_bwrap = sandbox.method == SandboxMethod::bwrap;
    const bool gated = has_gate(sandbox.method);
    const auto mode = rules.network ? rules.network->mode : NetworkMode::full;
    if (is_bwrap && (mode == NetworkMode::loopback || mode == NetworkMode::listed))
        refuse(rules.network->where, "network",
               "cannot filter addresses: it has the host's network, or one of the session's own with nothing in it",
               "use 'full' or 'none', or the method systemd");
    if (!gated && mode == NetworkMode::hosts)
        refuse(rules.network->where, "network", "has no gate that could hold a session to hosts",
               is_bwrap ? "use 'full' or 'none', or the method systemd" : "use 'full', or the method systemd");
    if (!gated && rules.providers && !rules.providers->empty())
        refuse(rules.providers->front().where, "providers", "has no gate that could keep their keys outside of sessions",
               "put the keys into env_files, where sessions can read them, or use the method systemd");
    if (sandbox.method != SandboxMethod::systemd && rules.devices && !rules.devices->empty())
        refuse(rules.devices->front().where, "devices", "cannot choose the devices of a session",
               "remove the key, or use the method systemd");
}

void report_unknown_provider(const PolicyValue &section)
{
    const auto names = mapped(providers_with_gate(), [&](const auto &one) { return one.name; });
    section.at_its_name().report("the gate does not know the provider " + quote(section.yaml->key) + did_you_mean(section.yaml->key, names),
                                 fmt::format("name one of {}; for another one, name its host in network.hosts, and put the key into "
                                             "env_files, where sessions can read it",
                                             fmt::join(names, ", ")));
}

// The host that its key goes to: what the policy says, or what the table has. Empty where that is reported.
std::string find_host(const Provider &known, const std::optional<std::string> &said, const PolicyValue &at)
{
    auto found = host_of_provider(known, said.value_or(""));
    if (found.problem && said)
        at.report(quote(*said) + " is not a host of this provider, which " + *found.problem, "correct it, or remove the key");
    else if (found.problem)
        at.at_its_name().report(*found.problem, "say it as {key_file: ..., host: ...}");
    return std::move(found.host);
}

std::optional<ProviderRule> read_provider(const PolicyValue &section)
{
    const std::string &name = section.yaml->key;
    const Provider *known = find_provider(name);
    ProviderRule provider{known != nullptr ? std::string(known->name) : name, {}, {}, section.yaml->where};
    bool has_key_file = !section.is(YamlNode::Kind::mapping); // then the wrong type is what to report
    bool has_host = has_key_file;
    const auto read_key_file = [&](const PolicyValue &value) {
        has_key_file = true;
        if (auto path = read_path(value, problem_of_managed_file)) provider.key_file = {std::move(*path), value.where};
    };
    const auto read_host = [&](const PolicyValue &value) {
        has_host = true;
        if (const auto said = read_line(value); said && known != nullptr) provider.host = find_host(*known, said, value);
    };
    read_section(section, {{"key_file", read_key_file}, {"host", read_host}});
    if (!has_key_file)
        section.at_its_name().report(
            "has no key_file",
            fmt::format("name the file with its key, which only root can read: {{key_file: /etc/pi-agent/{}.key}}", name));
    if (known == nullptr) report_unknown_provider(section);
    if (known != nullptr && !has_host) provider.host = find_host(*known, std::nullopt, section);
    return provider.host.empty() || provider.key_file.path.empty() ? std::nullopt : std::optional(provider);
}

} // namespace

// --- The providers of models whose keys a gate can hold: the table of common/policy/providers.toml.

const std::vector<Provider> &providers_with_gate()
{
    static const std::vector<Provider> providers = {
#include "common/providers.inc"
    };
    return providers;
}

const Provider *find_provider(std::string_view name)
{
    const auto &all = providers_with_gate();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Provider &one) { return one.name == name || (!name.empty() && one.old_name == name); });
    return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> providers_of_key(std::string_view variable)
{
    std::vector<std::string> providers;
    for (const auto &[name, provider] : key_variables)
        if (name == variable) providers.emplace_back(provider);
    return providers;
}

std::optional<std::string> key_variable_of_provider(std::string_view provider)
{
    for (const auto &[name, other] : key_variables)
        if (other == provider) return std::string(name);
    return std::nullopt;
}

ProviderHost host_of_provider(const Provider &provider, std::string_view of_policy)
{
    if (of_policy.empty() && provider.host.empty())
        return {"", "has a host for each customer, and none is named; name yours: " + std::string(provider.host_pattern)};
    if (of_policy.empty() || of_policy == provider.host) return {std::string(provider.host), std::nullopt};
    if (provider.host_pattern.empty())
        return {"", "is at " + std::string(provider.host) + ", and its key goes to no other host; leave the host out"};
    if (!is_like(of_policy, provider.host_pattern))
        return {"", "has hosts like " + std::string(provider.host_pattern) + ", and its key goes to no other"};
    return {std::string(of_policy), std::nullopt};
}

KeyForm form_of_key(const Provider &provider, std::string_view key)
{
    if (provider.name == "anthropic" && key.starts_with(setup_token))
        return {"authorization", "Bearer ", std::string(setup_token) + "-" + std::string(key_placeholder)};
    return {provider.header, provider.prefix, std::string(key_placeholder)};
}

// --- Reads and checks `network:` and `providers:`.

std::optional<NetworkPolicy> read_network(const PolicyValue &value)
{
    if (value.is(YamlNode::Kind::mapping)) return read_hosts(value);
    if (!value.is(YamlNode::Kind::sequence)) return read_mode(value);
    NetworkPolicy network{NetworkMode::listed, read_parsed(value, parse_ip_range), value.where};
    if (value.node.items.empty()) value.report("is an empty list", "say 'network: none', or name ranges of addresses");
    return network;
}

// Checks what sessions reach: networks that the method cannot make, and keys that a network would give away.

bool has_gate(SandboxMethod method) noexcept
{
    return has_unit(method) && method != SandboxMethod::none; // systemd starts the gate, as an account that lives as long as it does
}

std::optional<Diagnostic> problem_of_providers(const NetworkPolicy &network, const std::vector<ProviderRule> &providers, const Rules &rules)
{
    if (providers.empty() || network.mode == NetworkMode::hosts || network.mode == NetworkMode::none) return std::nullopt;
    const char *mode = network.mode == NetworkMode::full ? "full" : network.mode == NetworkMode::loopback ? "loopback" : "a list of ranges";
    const std::string where = network.where.file.empty() ? "the default" : to_string(network.where);
    return Diagnostic{providers.front().where, place_of_key(rules, "providers"),
                      std::string("its key stays outside, but the network of these sessions is ") + mode + " (" + where +
                          "), which has no gate that could put it into requests",
                      "name the hosts that sessions reach, as in 'network: {hosts: [github.com]}', or put the key into env_files"};
}

// Groups of a user with an entry of their own lie between its levels, and who is in a group is not known here: what groups may say is left
// to the start (common/decide/decision.hpp).
void check_network_rules(const Policy &policy, Problems &problems)
{
    refuse_what_method_cannot(policy.sandbox, policy.rules, problems);
    const bool are_read = !problems.has("network") && !problems.has("providers"); // else their consequences are not another mistake
    bool groups_say_network = false;
    bool groups_say_providers = false;
    for (const auto &entry : policy.users) {
        groups_say_network = groups_say_network || (entry.is_group && rules_of(entry.rules).network);
        groups_say_providers = groups_say_providers || (entry.is_group && rules_of(entry.rules).providers);
    }
    std::set<std::string> told;
    const auto check_keys = [&](const std::optional<NetworkPolicy> &network, const Rules &saying) {
        const auto problem =
            saying.providers ? problem_of_providers(network.value_or(NetworkPolicy()), *saying.providers, saying) : std::nullopt;
        if (problem && told.insert(to_string(*problem)).second) problems.add_all({*problem});
    };
    if (policy.users.empty() && are_read) check_keys(policy.rules.network, policy.rules);
    for (const auto &entry : policy.users) {
        const Rules &own = rules_of(entry.rules);
        refuse_what_method_cannot(policy.sandbox, own, problems);
        for (const auto &root : entry.roots)
            refuse_what_method_cannot(policy.sandbox, rules_of(root.rules), problems);
        if (!are_read || (!own.providers && groups_say_providers)) continue;
        for (const auto &root : entry.roots) {
            if (const auto &at_root = rules_of(root.rules).network; at_root || own.network || !groups_say_network)
                check_keys(at_root ? at_root : own.network ? own.network : policy.rules.network, own.providers ? own : policy.rules);
        }
    }
}

// Reads rules by name: `network: {hosts: […]}` and `providers:`.

std::optional<std::vector<ProviderRule>> read_providers(const PolicyValue &section)
{
    const auto entries = read_entries(section);
    if (!entries) return std::nullopt;
    std::vector<ProviderRule> providers;
    for (const auto &entry : *entries) {
        auto provider = read_provider(entry);
        if (!provider) continue;
        if (std::ranges::find(providers, provider->name, &ProviderRule::name) != providers.end())
            entry.at_its_name().report("names the provider " + provider->name + " a second time, by another name", "keep one of the two");
        providers.push_back(std::move(*provider));
    }
    return providers;
}

} // namespace pi_agent

// Lays one level over the other.
#include "common/decide/effective.hpp"

#include "common/policy/policy_levels.hpp"
#include "common/policy/policy_sections.hpp"
#include "common/policy/provider_table.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

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
    const auto place = policy.rules.places.find("network");
    return {network.where, place == policy.rules.places.end() ? "network" : place->second.key,
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
        if (const auto *problem = std::get_if<HostProblem>(&parsed))
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

// Writes effective values as the policy would.

namespace {

std::string list_of(const std::vector<std::string> &texts)
{
    return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string to_yaml(const std::vector<PolicyPath> &paths, const PolicyKey & /*key*/)
{
    std::vector<std::string> texts;
    for (const auto &path : paths)
        texts.push_back(escape_for_display(path.path) + (path.is_directory ? "/" : ""));
    return list_of(texts);
}

std::string to_yaml(const Protection &protection, const PolicyKey &key)
{
    return protection ? to_yaml(*protection, key) : "default";
}

// The default list is a word.
std::string to_yaml(const HomeDirectories &directories, const PolicyKey & /*key*/)
{
    std::vector<std::string> texts;
    bool has_default = false;
    for (const auto &path : directories.paths)
        if (path.where.line > 0)
            texts.push_back("~/" + escape_for_display(path.path));
        else
            has_default = true;
    if (directories.best_effort) texts.insert(texts.begin(), "best_effort");
    if (has_default) texts.insert(texts.begin(), "default");
    return list_of(texts);
}

// A '*' begins an alias where no quotes stand.
std::string list_of_hosts(const std::vector<HostRule> &rules)
{
    std::vector<std::string> texts;
    for (const auto &rule : rules)
        texts.push_back(to_string(rule).find_first_of("*[:") == std::string::npos ? to_string(rule) : '"' + to_string(rule) + '"');
    return list_of(texts);
}

std::string to_yaml(const NetworkPolicy &network, const PolicyKey &key)
{
    if (network.mode == NetworkMode::hosts)
        return fmt::format("{{hosts: {}{}}}", list_of_hosts(network.hosts),
                           network.may_grant.empty() ? "" : ", may_grant: " + list_of_hosts(network.may_grant));
    if (network.mode != NetworkMode::listed) return std::string(split(key.choices, ' ').at(static_cast<std::size_t>(network.mode)));
    std::vector<std::string> texts;
    for (const auto &range : network.allowed)
        texts.push_back(to_string(range));
    return list_of(texts);
}

// Whether it differs from what the table of providers has.
bool has_host(const ProviderRule &provider)
{
    const auto *known = find_provider(provider.name);
    return known == nullptr || known->host != provider.host;
}

std::string to_yaml(const std::vector<ProviderRule> &providers, const PolicyKey & /*key*/)
{
    std::vector<std::string> texts;
    for (const auto &provider : providers)
        texts.push_back(fmt::format("{}: {{key_file: {}{}{}}}", provider.name, escape_for_display(provider.key_file.path),
                                    has_host(provider) ? ", host: " : "", has_host(provider) ? provider.host : ""));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string to_yaml(const SaidLimit &limit, const PolicyKey & /*key*/)
{
    return limit.text;
}

std::string to_yaml(const PolicyWord &word, const PolicyKey & /*key*/)
{
    return escape_for_display(word.text);
}

std::string to_yaml(bool value, const PolicyKey & /*key*/)
{
    return value ? "true" : "false";
}

// The table has the choices in the order of the enumeration.
template <typename Choice>
requires std::is_enum_v<Choice> std::string to_yaml(Choice value, const PolicyKey &key)
{
    return std::string(split(key.choices, ' ').at(static_cast<std::size_t>(value)));
}

bool is_value(const PolicyKey &key)
{
    if (key.path.ends_with(".network.hosts") || key.path.ends_with(".network.may_grant")) return false; // of network, which is one value
    if (key.path == "users.*.providers") return true;                                                   // the same
    return key.form != ValueForm::section && key.form != ValueForm::names && !key.path.starts_with("users.*.providers.");
}

} // namespace

std::vector<EffectiveValue> effective_values(const Policy &policy)
{
    std::map<std::string_view, const PolicyKey *> keys;
    for (const auto &key : policy_keys())
        keys.emplace(key.path == "users.*.readable" ? "readable" : key.path, &key);
    std::map<std::string, std::string> texts;
    each_level_key(
        [&](const char *name, const auto & /*read*/, const auto &value) {
            if (value) texts[name] = to_yaml(*value, *keys.at(name));
        },
        policy.rules);
    for (const auto &[file, text] : policy.documents)
        texts[key_of_document(file)] = escape_for_display(text);
    std::vector<EffectiveValue> values;
    for (const auto &key : policy_keys()) {
        const bool is_at_users = key.path.starts_with("users.*.") && !key.path.starts_with("users.*.roots.") && !key.repeats.empty();
        const bool is_readable = key.path == "users.*.readable";
        if ((!is_at_users && !is_readable) || !is_value(key)) continue;
        const std::string name(is_readable ? "readable" : key.repeats);
        const auto text = texts.find(name);
        const auto place = policy.rules.places.find(name);
        const auto said = place == policy.rules.places.end() ? std::nullopt : std::optional(place->second);
        values.push_back({name, text == texts.end() ? std::string(keys.at(name)->standard) : text->second, said});
    }
    return values;
}

} // namespace pi_agent

// Writes effective values as the policy would.
#include "common/decide/effective_values.hpp"

#include "common/base/text.hpp"
#include "common/policy/policy_keys.hpp"
#include "common/policy/policy_levels.hpp"
#include "common/policy/provider_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <type_traits>

namespace pi_agent {

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
    Rules::each(
        [&](const char *name, const auto &value) {
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

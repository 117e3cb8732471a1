// Which level of the policy says which value: a part of an explanation, and the command show.
#include "admin/diagnose/explain.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/decide/effective.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_values.hpp"

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

// "users.alice.network, p.yaml:7:3", and what else says a part of the value.
std::string places_text(const SaidAt &said)
{
    std::string text = escape_for_display(said.key) + ", " + to_string(said.where);
    for (const auto &more : said.also)
        text += "; " + places_text(more);
    return text;
}

nlohmann::json with_places(nlohmann::json value, const SaidAt &said)
{
    value["key"] = said.key;
    value["where"] = to_string(said.where);
    for (const auto &more : said.also)
        value["also"].push_back({{"key", more.key}, {"where", to_string(more.where)}});
    return value;
}

// The entry of a user or group whose variable it is.
std::string key_of_entry(const Policy &policy, const std::string &name, const Position &where)
{
    for (const auto &entry : policy.users)
        if (const auto place = entry.env_where.find(name); place != entry.env_where.end() && to_string(place->second) == to_string(where))
            return entry_key(entry) + ".env." + name;
    return "env." + name;
}

// The variables that the policy sets for this user, each a value of its own. Those of their entry win.
std::vector<EffectiveValue> variables(const Policy &policy, const AccessRules &rules)
{
    std::map<std::string, EffectiveValue> found;
    const auto add = [&](const std::string &name, const std::string &value, SaidAt said) {
        const std::string shown = looks_secret(name, value) ? "(hidden)" : escape_for_display(value);
        found.insert_or_assign(name, EffectiveValue{"env." + name, shown, std::move(said)});
    };
    for (const auto &[name, value] : policy.env)
        add(name, value, {policy.env_where.at(name), "env." + name});
    for (const auto &[name, value] : rules.env)
        add(name, value, {rules.env_where.at(name), key_of_entry(policy, name, rules.env_where.at(name))});
    std::vector<EffectiveValue> values;
    for (auto &[name, value] : found)
        values.push_back(std::move(value));
    return values;
}

} // namespace

std::string said_text(const Policy &policy)
{
    std::string text;
    for (const auto &[key, value, said] : effective_values(policy))
        if (said) text += fmt::format("{} {}: {} ({})\n", text.empty() ? "said:    " : "         ", key, value, places_text(*said));
    return text;
}

nlohmann::json said_json(const Policy &policy)
{
    auto values = nlohmann::json::object();
    for (const auto &[key, value, said] : effective_values(policy))
        if (said) values[key] = with_places({{"value", value}}, *said);
    return values;
}

void run_show(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out)
{
    const auto observer = Observer::self();
    const auto user = account_to_explain(user_name, observer);
    const auto explanation = explain(load_policy(policy_path), policy_path, observer, user, directory);
    if (const auto *refused = std::get_if<NotAuthorised>(&explanation.access)) throw Failure(ExitStatus::denied, refused->text);
    if (const auto &in = explanation.directory; in && !in->allowed.value_or(false))
        throw Failure(ExitStatus::denied, escape_for_display(in->path) + ": " + in->text);
    auto values = effective_values(explanation.policy);
    for (auto &variable : variables(explanation.policy, std::get<AccessRules>(explanation.access)))
        values.push_back(std::move(variable));
    if (!json) {
        for (const auto &[key, value, said] : values)
            out << key << ":" << (value.empty() ? "" : " ") << value << "    # " << (said ? places_text(*said) : "default") << '\n';
        return;
    }
    auto list = nlohmann::json::object();
    for (const auto &[key, value, said] : values) {
        nlohmann::json entry = {{"value", text_or_null(value)}, {"key", nullptr}, {"where", nullptr}};
        if (said) entry = with_places(std::move(entry), *said);
        list[key] = std::move(entry);
    }
    print_json({{"user", user.name}, {"effective", list}}, out);
}

} // namespace pi_agent

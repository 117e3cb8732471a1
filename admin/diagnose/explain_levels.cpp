// Which level of the policy says which value: a part of an explanation, and the command show.
#include "admin/diagnose/explain.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/decide/effective_values.hpp"
#include "common/policy/policy_load.hpp"

#include <fmt/format.h>
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
    const auto values = effective_values(explanation.policy);
    if (!json) {
        for (const auto &[key, value, said] : values)
            out << key << ":" << (value.empty() ? "" : " ") << value << "    # " << (said ? places_text(*said) : "default") << '\n';
        return;
    }
    auto list = nlohmann::json::object();
    for (const auto &[key, value, said] : values) {
        nlohmann::json entry = {{"value", text_or_null(value)}, {"key", nullptr}, {"where", nullptr}};
        list[key] = said ? with_places(std::move(entry), *said) : std::move(entry);
    }
    print_json({{"user", user.name}, {"effective", list}}, out);
}

} // namespace pi_agent

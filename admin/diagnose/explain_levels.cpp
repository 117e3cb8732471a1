// Which level of the policy says which value: a part of an explanation, and the command show.
#include "admin/diagnose/explain.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/decide/effective_values.hpp"
#include "common/policy/policy_load.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

std::string said_text(const Policy &policy)
{
    std::string text;
    for (const auto &[key, value, said] : effective_values(policy))
        if (said)
            text += fmt::format("{} {}: {} ({}, {})\n", text.empty() ? "said:    " : "         ", key, value, escape_for_display(said->key),
                                to_string(said->where));
    return text;
}

nlohmann::json said_json(const Policy &policy)
{
    auto values = nlohmann::json::object();
    for (const auto &[key, value, said] : effective_values(policy))
        if (said) values[key] = {{"value", value}, {"key", said->key}, {"where", to_string(said->where)}};
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
            out << key << ":" << (value.empty() ? "" : " ") << value << "    # "
                << (said ? escape_for_display(said->key) + ", " + to_string(said->where) : "default") << '\n';
        return;
    }
    auto list = nlohmann::json::object();
    for (const auto &[key, value, said] : values)
        list[key] = {{"value", text_or_null(value)},
                     {"key", said ? nlohmann::json(said->key) : nlohmann::json(nullptr)},
                     {"where", said ? nlohmann::json(to_string(said->where)) : nlohmann::json(nullptr)}};
    print_json({{"user", user.name}, {"effective", list}}, out);
}

} // namespace pi_agent

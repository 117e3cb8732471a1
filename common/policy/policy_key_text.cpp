// The forms of values in words.
#include "common/policy/policy_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace pi_agent {

namespace {

std::string words(std::string_view list)
{
    std::vector<std::string> quoted;
    for (const auto word : split_words(list))
        quoted.push_back(fmt::format("`{}`", word));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

} // namespace

std::string form_text(const PolicyKey &key)
{
    switch (key.form) {
    case ValueForm::version:
        return fmt::format("the number {}", policy_version);
    case ValueForm::section:
        return "a mapping of the keys below";
    case ValueForm::names:
        return "a mapping of names";
    case ValueForm::document:
        return "a mapping, as JSON";
    case ValueForm::boolean:
        return "`true`, `false`";
    case ValueForm::text:
    case ValueForm::line:
    case ValueForm::fixed:
        return "text";
    case ValueForm::name:
        return "a name";
    case ValueForm::choice:
        return words(key.choices) + (key.later.empty() ? "" : "; not yet: " + words(key.later));
    case ValueForm::list:
        return "a list";
    case ValueForm::choice_or_list:
        return words(key.choices) + ", or a list";
    case ValueForm::amount:
        return "a whole number with " + words(key.choices);
    case ValueForm::count:
        return "a whole number";
    case ValueForm::later:
        return "nothing yet";
    }
    return "";
}

} // namespace pi_agent

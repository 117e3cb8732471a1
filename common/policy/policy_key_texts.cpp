// What the pages and the schema say of a policy's key: its path, its form, and the levels that repeat it.
#include "common/policy/policy_keys.hpp"

#include "common/base/text.hpp"
#include "common/policy/policy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

std::string words(std::string_view list)
{
    std::vector<std::string> quoted;
    for (const auto word : split(list, ' '))
        quoted.push_back(fmt::format("`{}`", word));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

} // namespace

std::string display_path(const PolicyKey &key)
{
    std::string text(key.path);
    if (const auto root = text.find(".roots.*"); root != std::string::npos) text.replace(root, 8, ".roots[N]");
    for (auto star = text.find('*'); star != std::string::npos; star = text.find('*'))
        text.replace(star, 1, "NAME");
    return text;
}

std::string levels_text(const PolicyKey &key)
{
    std::vector<std::string> others;
    for (const auto *other : policy_keys_repeating(key))
        others.push_back(fmt::format("`{}`", display_path(*other)));
    return others.empty() ? "" : fmt::format("Also {}.", fmt::join(others, " and "));
}

std::string form_text(const PolicyKey &key)
{
    switch (key.form) {
    case ValueForm::version:
        return fmt::format("the number {}", policy_version);
    case ValueForm::section:
        return "a mapping";
    case ValueForm::names:
        return "a mapping of names";
    case ValueForm::document:
        return "a mapping, as JSON";
    case ValueForm::boolean:
        return "`true`, `false`";
    case ValueForm::text:
    case ValueForm::line:
        return "text";
    case ValueForm::name:
        return "a name";
    case ValueForm::choice:
        return words(key.choices);
    case ValueForm::list:
        return "a list";
    case ValueForm::roots:
        return "a list, also of mappings";
    case ValueForm::choice_or_list:
        return words(key.choices) + ", or a list";
    case ValueForm::network:
        return words(key.choices) + ", a list, or a mapping";
    case ValueForm::amount:
        return "a whole number with " + words(key.choices);
    case ValueForm::count:
        return "a whole number";
    }
    return "";
}

} // namespace pi_agent

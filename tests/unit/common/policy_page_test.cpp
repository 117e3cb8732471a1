// docs/policy.md is what the table of keys says.
#include "common/policy_keys.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <sstream>

using namespace pi_agent;

namespace {

const std::string page = std::string(PI_AGENT_EXAMPLES) + "/../docs/policy.md";
const std::string mark = "<!-- What follows is written by tests/unit/common/policy_page_test.cpp. -->\n";

std::string words(std::string_view list)
{
    std::vector<std::string> quoted;
    for (const auto word : split_words(list))
        quoted.push_back(fmt::format("`{}`", word));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

std::string form_of(const PolicyKey &key)
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

std::string row_of(const PolicyKey &key)
{
    const auto code = [](std::string_view text) { return text.empty() ? std::string() : fmt::format("`{}`", text); };
    const auto more = key.page.empty() ? std::string() : fmt::format(" ([{}]({}))", key.page, key.page);
    return fmt::format("| `{}`{} | {} | {} | {} | {}{} |\n", display_path(key), key.required ? ", required" : "", form_of(key),
                       code(key.standard), code(key.example), key.meaning, more);
}

std::string reference()
{
    std::string text = "\n| key | value | default | example | |\n| --- | --- | --- | --- | --- |\n";
    for (const auto &key : policy_keys())
        text += row_of(key);
    return text;
}

} // namespace

// To write it anew: PI_AGENT_WRITE_POLICY_PAGE=1
TEST_CASE("the page of the policy's keys is what the table says")
{
    std::ifstream file(page);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    const auto begin = text.str().find(mark);
    REQUIRE(begin != std::string::npos);
    const auto whole = text.str().substr(0, begin) + mark + reference();
    if (std::getenv("PI_AGENT_WRITE_POLICY_PAGE") != nullptr) // NOLINT(concurrency-mt-unsafe)
        std::ofstream(page) << whole;
    else
        CHECK_MESSAGE(text.str() == whole,
                      "docs/policy.md is not what common/policy_keys.cpp says; PI_AGENT_WRITE_POLICY_PAGE=1 writes it");
}

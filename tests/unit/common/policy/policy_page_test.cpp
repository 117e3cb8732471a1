// docs/reference/policy.md is what the table of keys says.
#include "common/policy/policy_keys.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

using namespace pi_agent;

namespace policy_page_test {

namespace {

const std::string page = std::string(PI_AGENT_EXAMPLES) + "/../docs/reference/policy.md";
const std::string mark = "<!-- What follows is written by tests/unit/common/policy/policy_page_test.cpp. -->\n";

std::string row_of(const PolicyKey &key)
{
    const auto code = [](std::string_view text) { return text.empty() ? std::string() : fmt::format("`{}`", text); };
    const auto more = key.page.empty() ? std::string() : fmt::format(" ([{}]({}))", key.page, key.page);
    return fmt::format("| `{}`{} | {} | {} | {} | {}{} |\n", display_path(key), key.required ? ", required" : "", form_text(key),
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
                      "docs/reference/policy.md is not what common/policy/policy_keys.cpp says; PI_AGENT_WRITE_POLICY_PAGE=1 writes it");
}

} // namespace policy_page_test

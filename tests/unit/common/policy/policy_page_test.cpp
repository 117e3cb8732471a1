// docs/reference/policy.md is what the tables of keys and tasks say.
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_page_test {

namespace {

const std::string page = std::string(PI_AGENT_EXAMPLES) + "/../docs/reference/policy.md";
const std::string mark = "<!-- What follows is written by tests/unit/common/policy/policy_page_test.cpp. -->\n";

std::string row_of(const PolicyKey &key)
{
    const auto code = [](std::string_view text) { return text.empty() ? std::string() : fmt::format("`{}`", text); };
    const auto name = key.page.substr(key.page.rfind('/') + 1);
    const auto more = key.page.empty() ? std::string() : fmt::format(" ([{}](../{}))", name, key.page);
    const auto levels = levels_text(key);
    return fmt::format("| `{}`{} | {} | {} | {} | {}{}{}{} |\n", display_path(key), key.required ? ", required" : "", form_text(key),
                       code(key.standard), code(key.example), key.meaning, levels.empty() ? "" : " ", levels, more);
}

std::string reference()
{
    std::string text;
    for (const auto &task : policy_tasks()) {
        text += fmt::format("\n## {}\n\n```yaml\n{}```\n\n", task.title, task.example);
        text += "| key | value | default | example | |\n| --- | --- | --- | --- | --- |\n";
        for (const auto *key : policy_keys_of(task))
            text += row_of(*key);
    }
    return text;
}

} // namespace

TEST_CASE("every key has one task, and every task has keys")
{
    std::set<std::string_view> seen;
    for (const auto &task : policy_tasks()) {
        CHECK_MESSAGE(!policy_keys_of(task).empty(), task.title);
        for (const auto *key : policy_keys_of(task))
            CHECK_MESSAGE(seen.insert(key->path).second, key->path);
    }
    for (const auto &key : policy_keys())
        CHECK_MESSAGE(seen.contains(key.repeats.empty() ? key.path : key.repeats), key.path);
}

TEST_CASE("the example of every task is a valid policy")
{
    for (const auto &task : policy_tasks()) {
        const bool has_users = task.example.find("users:") != std::string_view::npos;
        const auto text = fmt::format("version: 1\n{}{}", has_users ? "" : "users: {alice: {roots: [/srv/a]}}\n", task.example);
        CHECK_NOTHROW_MESSAGE(static_cast<void>(parse(text)), text);
    }
}

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
        CHECK_MESSAGE(text.str() == whole, "docs/reference/policy.md is not what policy_keys.toml of common/policy "
                                           "say; PI_AGENT_WRITE_POLICY_PAGE=1 writes it");
}

} // namespace policy_page_test

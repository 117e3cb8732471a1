// Each code has its text, each text its code, and docs/troubleshooting.md is what they say: admin/diagnose/advice.hpp
#include "admin/diagnose/advice.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <set>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace advice_test {

namespace {

const std::string page = std::string(PI_AGENT_EXAMPLES) + "/../docs/troubleshooting.md";

} // namespace

TEST_CASE("each code has one section of advice, in the same order, and begins with its exit status")
{
    const auto &kinds = failure_kinds();
    const auto &advice = advice_on_failures();
    REQUIRE(kinds.size() == advice.size());
    std::set<std::string> codes;
    for (std::size_t index = 0; index < kinds.size(); ++index) {
        CAPTURE(kinds[index].code);
        CHECK(std::string(kinds[index].code) == advice[index].name);
        CHECK(codes.insert(kinds[index].code).second);
        CHECK(std::string(kinds[index].code).starts_with("E" + std::to_string(static_cast<int>(kinds[index].status))));
        CHECK(std::string(advice[index].cause).size() > 20);
        CHECK(std::string(advice[index].user).size() + std::string(advice[index].admin).size() > 10);
        const auto answer = explain_word(kinds[index].code);
        REQUIRE(answer);
        CHECK(has(*answer, kinds[index].title));
    }
}

TEST_CASE("every kind of failure has a code of its own and the status of its row")
{
    std::set<std::string> codes;
    for (int number = 1; number <= static_cast<int>(last_failure_kind); ++number) {
        const auto kind = static_cast<FailureKind>(number);
        const KindFacts &facts = facts_of(kind, status_of(kind));
        CAPTURE(number);
        CHECK(facts.kind == kind);
        CHECK(codes.insert(facts.code).second);
    }
    CHECK(std::string(facts_of(FailureKind::other, ExitStatus::denied).code) == "E77");
    CHECK(std::string(facts_of(FailureKind::outside_roots, ExitStatus::limit).code) == "E75"); // a kind that does not fit its status
    CHECK(pointer_to(FailureKind::outside_roots, ExitStatus::denied) == "see: pi-agentctl explain E77-root");
    CHECK(pointer_to(FailureKind::command_line, ExitStatus::usage).empty()); // its message names the help
}

TEST_CASE("an answer fits a terminal of 100 columns and has no Markdown")
{
    for (const std::string word : {"E77-root", "E78-policy", "sudo-rule", "limits.memory", "users.alice.roots", "network"}) {
        const auto answer = explain_word(word);
        REQUIRE_MESSAGE(answer, word);
        std::istringstream lines(*answer);
        for (std::string line; std::getline(lines, line);)
            CHECK_MESSAGE(line.size() <= 100, line);
        CHECK_MESSAGE(answer->find('`') == std::string::npos, *answer);
    }
    CHECK(explain_word("users.Jane.Doe.limits.memory")->starts_with("users.NAME.limits.memory, a key"));
    CHECK(explain_word("users.%devs.roots[12].mask")->starts_with("users.NAME.roots[N].mask, a key"));
    CHECK(explain_word("users.Jane.Doe.env.EDITOR")->starts_with("users.NAME.env.NAME, a key"));
    CHECK_FALSE(explain_word("users.Jane..limits"));
    CHECK_FALSE(explain_word("E77-nonsense"));
    CHECK_FALSE(explain_word("users.alice.nonsense"));
    CHECK_FALSE(explain_word(""));
}

// To write it anew: PI_AGENT_WRITE_TROUBLESHOOTING=1
TEST_CASE("the page of troubleshooting is what the tables say")
{
    if (std::getenv("PI_AGENT_WRITE_TROUBLESHOOTING") != nullptr) { // NOLINT(concurrency-mt-unsafe)
        std::ofstream(page) << troubleshooting_page();
        return;
    }
    std::ifstream file(page);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    CHECK_MESSAGE(text.str() == troubleshooting_page(),
                  "docs/troubleshooting.md is not what admin/diagnose/advice_*.cpp say; PI_AGENT_WRITE_TROUBLESHOOTING=1 writes it");
}

} // namespace advice_test

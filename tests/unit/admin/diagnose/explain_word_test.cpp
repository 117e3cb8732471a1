// Each code has its text, each text its code, and what `explain` says is what docs/troubleshooting.md says: admin/diagnose/explain.hpp
#include "admin/diagnose/explain.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace explain_word_test {

namespace {

// The rest of each line of the page that begins so.
std::vector<std::string> lines_of_page(const std::string &begin)
{
    std::ifstream file(std::string(PI_AGENT_EXAMPLES) + "/../docs/troubleshooting.md");
    REQUIRE(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(begin)) lines.push_back(line.substr(begin.size()));
    return lines;
}

} // namespace

TEST_CASE("each code has one section of the page, in the same order, with its title, and begins with its exit status")
{
    const auto &kinds = failure_kinds();
    const auto sections = lines_of_page("### ");
    REQUIRE(kinds.size() == sections.size());
    std::set<std::string> codes;
    for (std::size_t index = 0; index < kinds.size(); ++index) {
        const std::string code = kinds[index].code;
        CAPTURE(code);
        CHECK(code == sections[index]);
        CHECK(codes.insert(code).second);
        CHECK(code.starts_with("E" + std::to_string(static_cast<int>(kinds[index].status))));
        const auto answer = explain_word(code);
        REQUIRE(answer);
        const auto title = fmt::format("{}: {} (exit status {})\n\n", code, kinds[index].title, static_cast<int>(kinds[index].status));
        CHECK(answer->starts_with(title));
        CHECK(answer->find("\n\n", title.size()) > title.size() + 20); // the cause
        CHECK((has(*answer, "\nUser:          ") || has(*answer, "\nAdministrator: ")));
    }
    for (const auto &status : lines_of_page("## Exit status ")) {
        const auto number = static_cast<ExitStatus>(std::stoi(status));
        CHECK(status == fmt::format("{}: {}", static_cast<int>(number), facts_of(FailureKind::other, number).title));
    }
}

TEST_CASE("each row of the table of messages names a code, and each row of the table of faults is explained")
{
    std::size_t messages = 0;
    std::size_t faults = 0;
    for (const auto &row : lines_of_page("| `")) {
        CAPTURE(row);
        if (const auto code = row.find("` | [E"); code != std::string::npos) {
            ++messages;
            CHECK(explain_word(row.substr(code + 5, row.find(']', code) - code - 5)));
        } else {
            ++faults;
            const auto answer = explain_word(row.substr(0, row.find('`')));
            REQUIRE(answer);
            CHECK(has(*answer, ": a fault that pi-agentctl doctor finds\n\n"));
            CHECK((has(*answer, "\nUser:          ") || has(*answer, "\nAdministrator: ")));
        }
    }
    CHECK(messages > 100);
    CHECK(faults > 25);
    CHECK_FALSE(explain_word("denied: …"));
}

TEST_CASE("an answer has the whole text, in lines that begin below each other")
{
    CHECK(*explain_word("E64-update") ==
          "E64-update: The agent cannot update itself (exit status 64)\n\n"
          "'pi update' would replace the agent's program, which belongs to the host. 'pi update --extensions'\n"
          "works.\n\n"
          "User:          Ask the administrator for a newer version.\n"
          "Administrator: Run 'sudo pi-agentctl agent upgrade'.\n");
    CHECK(*explain_word("link") == "link: a fault that pi-agentctl doctor finds\n\n"
                                   "A symlink in files that 'pi' reads as the user leads out of a root, where an agent can have made it.\n"
                                   "'pi' does not follow it.\n\n"
                                   "User:          Remove the link, or replace it by a copy.\n");
    CHECK(has(*explain_word("E69"), "\nAdministrator: Run 'sudo pi-agentctl doctor'. 'sudo pi-agentctl history --failed' lists the failed\n"
                                    "               starts.\n"));
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

} // namespace explain_word_test

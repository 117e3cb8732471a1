// Broken policies and what an administrator is told of each: tests/unit/data/broken_*.txt
#include "admin/text/terminal.hpp"

#include "common/policy/policy_load.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace pi_agent;

namespace broken_policies_test {

namespace {

// In the file: "=== title", the policy, "---", what is said of it. A line that would look like one of these begins with '\'.
struct BrokenPolicy {
    std::string title;
    std::string text;
    std::string said;
};

std::string file_of(const std::string &kind)
{
    return std::string(PI_AGENT_EXAMPLES) + "/../tests/unit/data/broken_" + kind + ".txt";
}

std::vector<BrokenPolicy> read_broken_policies(const std::string &kind)
{
    std::ifstream file(file_of(kind));
    REQUIRE_MESSAGE(file, kind);
    std::vector<BrokenPolicy> policies;
    bool in_said = false;
    for (std::string line; std::getline(file, line);) {
        if (line.substr(0, 4) == "=== ") {
            policies.push_back({line.substr(4), "", ""});
            in_said = false;
        } else if (line == "---") {
            in_said = true;
        } else {
            (in_said ? policies.at(policies.size() - 1).said : policies.at(policies.size() - 1).text) +=
                line.substr(line.substr(0, 1) == "\\" ? 1 : 0) + "\n";
        }
    }
    return policies;
}

std::string said_of(const std::string &text)
{
    try {
        static_cast<void>(parse_policy({{"p.yaml", text}}));
    } catch (const PolicyError &error) {
        return show_problems(error.diagnostics(), "", [&](const std::string &) { return text; });
    }
    return "nothing\n";
}

void write_broken_policies(const std::string &kind, const std::vector<BrokenPolicy> &policies)
{
    const auto escaped = [](const std::string &text) {
        std::istringstream lines(text);
        std::string result;
        for (std::string line; std::getline(lines, line);)
            result += (line.substr(0, 3) == "---" || line.substr(0, 1) == "\\" ? "\\" : "") + line + "\n";
        return result;
    };
    std::ofstream file(file_of(kind));
    for (const auto &policy : policies)
        file << "=== " << policy.title << '\n' << escaped(policy.text) << "---\n" << said_of(policy.text);
}

} // namespace

TEST_CASE("what is wrong is told with its place, its line and a caret")
{
    std::size_t count = 0;
    for (const std::string kind : {"yaml", "shapes", "rules"}) {
        const auto policies = read_broken_policies(kind);
        // To write anew what is said: PI_AGENT_WRITE_BROKEN=1. Then read it.
        if (std::getenv("PI_AGENT_WRITE_BROKEN") != nullptr)
            write_broken_policies(kind, policies); // NOLINT(concurrency-mt-unsafe)
        else
            for (const auto &policy : policies)
                CHECK_MESSAGE(said_of(policy.text) == policy.said, policy.title);
        count += policies.size();
    }
    CHECK(count >= 60);
}

} // namespace broken_policies_test

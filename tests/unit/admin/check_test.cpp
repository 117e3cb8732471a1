// The policy against the host: admin/check.hpp
#include "admin/check.hpp"

#include "admin/problem_report.hpp"
#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace check_test {

namespace {

std::string host_problems(const std::string &text)
{
    Problems problems;
    static_cast<void>(check_host(parse(text), Observer::self(), problems));
    try {
        problems.throw_if_any();
    } catch (const PolicyError &error) {
        return error.what();
    }
    return "";
}

const std::string head = "version: 1\nagent: {binary: /usr/bin/env, accounts: shared}\n";

} // namespace

TEST_CASE("users, groups and roots that the host does not have are errors with their place")
{
    CHECK(contains(host_problems(head + "users: {no-such-user: {roots: [/srv/a]}}\n"),
                   "p.yaml:3:9: users.no-such-user: there is no user 'no-such-user' on this host"));
    CHECK(contains(host_problems(head + "users: {'%no-such-group': {roots: [/srv/a]}}\n"),
                   "p.yaml:3:9: users.%no-such-group: there is no group"));
    CHECK(contains(host_problems(head + "users: {'%adm': {roots: [/srv/a]}}\n"),
                   "p.yaml:3:9: users.%adm: 'adm' is a group that opens the host"));
}

TEST_CASE("roots that their user cannot reach are errors with their place" * doctest::skip(not_root()))
{
    CHECK(contains(host_problems(head + "users: {daemon: {roots: [/usr/no-such-root]}}\n"),
                   "p.yaml:3:26: users.daemon.roots[0]: the root '/usr/no-such-root' cannot be used"));
    CHECK(contains(host_problems(head + "users: {daemon: {roots: [/root/x]}}\n"), "Permission denied"));
    CHECK(host_problems(head + "users: {daemon: {roots: [/usr/share]}}\n").empty());
}

TEST_CASE("the policy alone is judged without this host")
{
    const TemporaryDirectory directory;
    const auto elsewhere = directory.write("elsewhere.yaml", head + "users: {no-such-user: {roots: [/srv/a]}}\n");
    CHECK_FALSE(check_policy(elsewhere).errors.empty());
    const auto report = check_policy(elsewhere, CheckScope::policy_only);
    CHECK(report.errors.empty());
    CHECK(report.entries == 1);
    CHECK(contains(to_text(report), "not verified: this host"));
    const auto broken = directory.write("broken.yaml", head + "users: {no-such-user: {roots: [/]}}\n");
    CHECK(check_policy(broken, CheckScope::policy_only).errors.size() == 1);
}

TEST_CASE("a draft need not be trusted, but must be a file and a policy")
{
    const TemporaryDirectory directory;
    const auto good = directory.write("good.yaml", head + "users: {alice: {roots: [/srv/a]}}\n");
    CHECK(load_for_check(good).users.size() == 1);
    const auto bad = directory.write("bad.yaml", "version: 1\nusers: {}\n");
    CHECK_THROWS_WITH_AS(static_cast<void>(load_for_check(bad)), doctest::Contains("bad.yaml:2:8: users: nobody is authorised"),
                         PolicyError);
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(load_for_check(directory / "fifo")), doctest::Contains("is not a regular file"), Failure);
    CHECK_THROWS_AS(static_cast<void>(load_for_check(directory / "absent")), SystemFailure);
    const auto large = directory.write("large.yaml", std::string(3U << 20U, ' '));
    CHECK_THROWS_WITH_AS(static_cast<void>(load_for_check(large)), doctest::Contains("larger than 1048576 bytes"), PolicyError);
}

TEST_CASE("as JSON, a problem has null for what it does not have")
{
    CHECK(to_json(Diagnostic{{"p.yaml", 3, 5}, "users.alice", "has no roots", "add some"}) ==
          nlohmann::json::parse(
              R"({"file": "p.yaml", "line": 3, "column": 5, "key": "users.alice", "message": "has no roots", "remedy": "add some"})"));
    CHECK(to_json(Diagnostic{{}, "", "no rg", ""}) ==
          nlohmann::json::parse(R"({"file": null, "line": null, "column": null, "key": null, "message": "no rg", "remedy": null})"));
}

TEST_CASE("a report without errors is valid, and one with them is not")
{
    CheckReport report;
    report.warnings.push_back({{}, "", "no rg", ""});
    CHECK(to_json(report)["valid"] == true);
    CHECK(to_json(report)["warnings"].size() == 1);
    report.errors.push_back({{"p.yaml", 1, 1}, "view", "bad", ""});
    CHECK(to_json(report)["valid"] == false);
    CHECK(to_json(report)["errors"][0]["key"] == "view");
}

TEST_CASE("each line of a message has the program before it, and its place is shown once it can be read again")
{
    const TemporaryDirectory directory;
    const auto file = directory.write("p.yaml", "view: all\n");
    CHECK(show_problems({{{file, 1, 7}, "view", "two\nlines", ""}}, "x: ", read_again) ==
          "x: " + file + ":1:7: view: two\nx: lines\n    1 | view: all\n      |       ^\n");
    CHECK(show_problems({{{directory / "absent", 1, 7}, "", "gone", ""}}, "", read_again) == (directory / "absent") + ":1:7: gone\n");
    CHECK(show_problems({{{file}, "", "whole", ""}}, "", read_again) == file + ": whole\n");
}

} // namespace check_test

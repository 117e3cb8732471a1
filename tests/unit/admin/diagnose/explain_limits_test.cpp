// Limits as they are explained and checked: admin/diagnose/explain.hpp
#include "admin/diagnose/explain.hpp"

#include "runner/root/session/session_directory.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace pi_agent;
using namespace pi_agent::test;

namespace explain_limits_test {

namespace {

Policy policy_with(const std::string &lines)
{
    return parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\n" + lines);
}

} // namespace

TEST_CASE("each limit is shown with its place, and a default as one")
{
    const auto limits = policy_with("limits: {memory: 8G, runtime: 12h, sessions: 2}\n").limits;
    CHECK(to_text(ExplainedLimits{limits, {}, ""}) == "limits:   a session: memory 8G (p.yaml:3:18), tasks 4096 (default), cpu not "
                                                      "limited, runtime 12h (p.yaml:3:31), files not limited;\n"
                                                      "          sessions at once: 2 (p.yaml:3:46)\n");
    CHECK(to_text(ExplainedLimits{}) == "limits:   a session: memory 80% of the host's (default), tasks 4096 (default), cpu not limited, "
                                        "runtime not limited, files not limited;\n"
                                        "          sessions at once: 8 (default)\n");
    const auto json = to_json(ExplainedLimits{limits, {}, ""});
    CHECK(json["memory"]["value"] == "8G");
    CHECK(json["memory"]["where"] == "p.yaml:3:18");
    CHECK(json["tasks"]["value"] == "4096");
    CHECK(json["tasks"]["where"] == nullptr);
    CHECK(json["cpu"]["value"] == nullptr);
}

TEST_CASE("without a sandbox no quota holds an agent")
{
    CHECK(find_disk_problem(policy_with("limits: {disk: 1G}\nsandbox: {method: none}\n")) == problem_of_method(SandboxMethod::none));
    CHECK(find_disk_problem(policy_with("sandbox: {method: none}\n")).empty());
}

TEST_CASE("what holds nobody here is said, and whether a start is possible with it")
{
    const auto limits = policy_with("limits: {memory: 8G}\n").limits;
    const ExplainedLimits explained{limits, idle_limits(limits, {true, {}}), ""};
    CHECK(contains(to_text(explained),
                   "          no start is possible: limits.memory: 8G (p.yaml:3:18) is not enforced: this host's control groups"));
    CHECK(contains(to_text(explained), "          limits.tasks (default) is not enforced: this host's control groups"));
    const auto json = to_json(explained);
    CHECK(json["not_enforced"][0]["limit"] == "limits.memory");
    CHECK(json["not_enforced"][0]["said"] == true);
    CHECK(json["not_enforced"][1]["said"] == false);
}

TEST_CASE("disk space is shown where the policy limits it, and what starts do where nothing holds it")
{
    const auto text_of = [](const char *choice, const std::string &problem) {
        const auto limits = policy_with(std::string("limits: {disk: 10G, disk_without_quota: ") + choice + "}\n").limits;
        return to_text(ExplainedLimits{limits, {}, "", problem});
    };
    CHECK(contains(text_of("tell", ""), "          disk of a user's agent: 10G (p.yaml:3:16)\n"));
    CHECK_FALSE(contains(text_of("tell", ""), "enforced"));
    CHECK(contains(text_of("tell", "why"), "          limits.disk is not enforced: why\n"));
    CHECK(contains(text_of("refuse", "why"), "          no start is possible: limits.disk is not enforced: why\n"));
    const auto json = to_json(ExplainedLimits{policy_with("limits: {disk: 10G}\n").limits, {}, "", "why"});
    CHECK(json["disk"]["value"] == "10G");
    CHECK(json["not_enforced"][0]["limit"] == "limits.disk");
    CHECK(json["not_enforced"][0]["reason"] == "why");
}

TEST_CASE("a limit of the disk that holds nobody is a warning, or an error where no session starts then")
{
    // Under this method it holds on no host.
    const std::string method = "sandbox: {method: none}\n";
    Problems problems;
    check_disk_limits(policy_with(method + "limits: {disk: 10G}\n"), problems);
    CHECK_NOTHROW(problems.throw_if_any());
    const auto told = find_idle_disk_limits(policy_with(method + "limits: {disk: 10G}\n"));
    REQUIRE(told.size() == 1);
    CHECK(told[0].choice == WithoutQuota::tell);
    CHECK(contains(to_string(told[0].told), "p.yaml:4:16: limits.disk: 10G is not enforced: under sandbox.method none"));
    const auto strict = policy_with(method + "limits: {disk: 10G, disk_without_quota: refuse}\n");
    check_disk_limits(strict, problems);
    CHECK_THROWS_WITH_AS(problems.throw_if_any(), doctest::Contains("limits.disk: 10G cannot be enforced on this host"), PolicyError);
    CHECK(find_idle_disk_limits(policy_with(method)).empty());
}

TEST_CASE("each level that says something of the disk is told for itself")
{
    const auto found =
        find_idle_disk_limits(parse("version: 1\nsandbox: {method: none}\nlimits: {disk: 10G}\nagent: {accounts: per-user}\nusers:\n"
                                    "  alice: {roots: [~/a], limits: {disk: 20G}}\n"
                                    "  bob: {roots: [~/b], limits: {disk_without_quota: refuse}}\n"
                                    "  carol: {roots: [~/c], limits: {tasks: 100}}\n"));
    REQUIRE(found.size() == 3);
    CHECK(found[0].told.key == "limits.disk");
    CHECK(contains(to_string(found[1].told), "p.yaml:6:40: users.alice.limits.disk: 20G is not enforced"));
    CHECK(found[1].choice == WithoutQuota::tell);
    CHECK(contains(to_string(found[2].told), "users.bob.limits.disk_without_quota: 10G cannot be enforced on this host"));
    CHECK(found[2].choice == WithoutQuota::refuse);
}

TEST_CASE("what is checked agrees with what the host has")
{
    const auto host = host_controllers();
    Problems problems;
    check_limits(policy_with("limits: {memory: 128M, tasks: 100, cpu: 50%}\n").limits, "", problems);
    for (const auto &[key, controller] :
         {std::pair("limits.memory: 128M", "memory"), std::pair("limits.tasks: 100", "pids"), std::pair("limits.cpu: 50%", "cpu")}) {
        std::string text;
        try {
            problems.throw_if_any();
        } catch (const PolicyError &error) {
            text = error.what();
        }
        CHECK(contains(text, std::string(key) + " cannot be enforced on this host") == (host.names.count(controller) == 0));
    }
    const auto told = idle_defaults(policy_with(""));
    CHECK(contains(told, "limits.memory (default) is not enforced") == (host.names.count("memory") == 0));
    CHECK(contains(told, "limits.tasks (default) is not enforced") == (host.names.count("pids") == 0));
}

} // namespace explain_limits_test

// The example policies are valid, and say what their comments say: policy-examples/*.yaml
#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_examples_test {

namespace {

Policy load_example(const std::string &name)
{
    std::ifstream file(std::string(PI_AGENT_EXAMPLES) + "/" + name);
    REQUIRE_MESSAGE(file, name);
    std::ostringstream text;
    text << file.rdbuf();
    return parse_policy({{name, text.str()}});
}

} // namespace

TEST_CASE("every example is a valid policy")
{
    int count = 0;
    for (const auto &file : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        const auto name = file.path().filename().string();
        CHECK_NOTHROW_MESSAGE(static_cast<void>(load_example(name)), name);
        ++count;
    }
    CHECK(count == 7);
}

TEST_CASE("every example starts the agent that README installs")
{
    for (const auto &file : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        const auto name = file.path().filename().string();
        CHECK_MESSAGE(load_example(name).agent.binary == AgentPolicy().binary, name);
    }
}

TEST_CASE("the minimal example authorises alice below her home")
{
    const auto policy = load_example("minimal.yaml");
    REQUIRE(policy.users.size() == 1);
    CHECK(policy.users[0].roots.at(0).text == "~/projects");
    CHECK(policy.network.mode == NetworkMode::full); // the default, which doctor names
}

TEST_CASE("the example of a shared host gives each user an account of their own")
{
    const auto policy = load_example("shared-host.yaml");
    CHECK(policy.agent.accounts == Accounts::per_user);
    CHECK(policy.users.size() == 3);
    CHECK(policy.env.at("PI_OFFLINE") == "1");
    CHECK(policy.network.mode == NetworkMode::hosts);
    CHECK(rule_for(policy.network.hosts, HostRule{"packages.example.org"}) != nullptr);
    CHECK(policy.network.may_grant.size() == 1);
}

TEST_CASE("the strict example shows one repository under an alias, masks secrets and lists the network")
{
    const auto policy = load_example("strict.yaml");
    CHECK(policy.projects.scope == ProjectScope::project);
    CHECK(policy.projects.paths == ProjectPaths::alias);
    CHECK(policy.projects.mask.size() == 2);
    CHECK_FALSE(policy.projects.protect.has_value());
    CHECK(policy.network.mode == NetworkMode::listed);
    CHECK(policy.scratch == ScratchKind::tmpfs);
    const auto &limits = policy.limits;
    CHECK((limits.memory && limits.tasks && limits.cpu && limits.runtime && limits.sessions));
}

TEST_CASE("the example of a team grants by groups, and the one of a build host nothing of its account's own")
{
    const auto team = load_example("team-with-groups.yaml");
    CHECK((team.users.at(0).is_group && team.users.at(1).is_group && !team.users.at(2).is_group));
    CHECK(team.agent.accounts == Accounts::per_user);
    CHECK((team.network.mode == NetworkMode::hosts && team.network.may_grant.empty()));
    const auto host = load_example("ci-runner.yaml");
    CHECK((host.toolchains.readable.paths.empty() && host.toolchains.caches.paths.empty() && host.host_env_files.empty()));
    CHECK(host.limits.runtime->amount == 7200);
}

TEST_CASE("the offline example reaches the loopback alone")
{
    CHECK(load_example("offline.yaml").network.mode == NetworkMode::loopback);
}

TEST_CASE("the example for a cluster has amounts, no loopback, and its secrets in a file")
{
    const auto policy = load_example("cluster.yaml");
    CHECK((policy.limits.memory && !policy.limits.memory_share));
    CHECK(policy.network.mode == NetworkMode::listed);
    CHECK(policy.env_files.size() == 1);
}

} // namespace policy_examples_test

// Limits held against what a host has: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include "support/failure.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace limit_controllers_test {

namespace {

const HostControllers nothing{true, {}};
const HostControllers everything{true, {"cpu", "memory", "pids", "io"}};

LimitsPolicy limits_of(const std::string &section)
{
    return parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nlimits: " + section + "\n").limits;
}

// The limits that are said, one a line.
std::string said_idle(const std::string &section, const HostControllers &host)
{
    std::string text;
    for (const auto &idle : idle_limits(limits_of(section), host))
        if (idle.said) text += to_string(idle) + "\n";
    return text;
}

} // namespace

TEST_CASE("a limit that is said and has no controller is named with its place")
{
    CHECK(said_idle("{memory: 8G}", nothing) == "limits.memory: 8G (p.yaml:3:18)\n");
    CHECK(said_idle("{memory: 50%}", nothing) == "limits.memory: 50% (p.yaml:3:18)\n");
    CHECK(said_idle("{tasks: 100, cpu: 50%}", nothing) == "limits.tasks: 100 (p.yaml:3:17)\nlimits.cpu: 50% (p.yaml:3:27)\n");
    CHECK(said_idle("{memory: 8G, tasks: 100, cpu: 50%, runtime: 1h, sessions: 2}", everything).empty());
    CHECK(said_idle("{tasks: 100, memory: 8G}", {true, {"pids"}}) == "limits.memory: 8G (p.yaml:3:30)\n");
}

TEST_CASE("time and the number of sessions need nothing of the kernel's")
{
    CHECK(said_idle("{runtime: 1h, sessions: 2}", nothing).empty());
}

TEST_CASE("defaults that hold nobody are told, and are no reason to refuse")
{
    const auto idle = idle_limits({}, nothing);
    REQUIRE(idle.size() == 2);
    CHECK((!idle[0].said && !idle[1].said));
    CHECK(to_string(idle[0]) == "limits.memory (default)");
    CHECK(to_string(idle[1]) == "limits.tasks (default)");
    CHECK(idle_limits({}, everything).empty());
}

TEST_CASE("the reason names what is missing, in the words of the version that the host has")
{
    CHECK(
        has(idle_limits({}, nothing)[0].reason, "/sys/fs/cgroup/cgroup.controllers) have no controller memory; start its kernel with it"));
    CHECK(has(idle_limits({}, nothing)[0].reason, "cgroup_disable=memory"));
    CHECK(has(idle_limits({}, {false, {}})[1].reason, "no control groups of version 1 with the controller pids are mounted"));
}

TEST_CASE("a share that comes to less than an agent needs is no limit to start with")
{
    constexpr std::uint64_t gib = std::uint64_t{1} << 30U;
    CHECK(problem_of_share(limits_of("{memory: 50%}"), gib).empty());
    CHECK(problem_of_share(limits_of("{memory: 8G}"), gib).empty());
    CHECK(problem_of_share({}, gib).empty());
    CHECK(has(problem_of_share(limits_of("{memory: 10%}"), gib), "10% of this host's memory are 102M, and the agent needs at least 128M"));
}

} // namespace limit_controllers_test

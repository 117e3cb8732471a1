// Which project a user's agent has, and what a file system without quotas is told apart by: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "runner/as_agent/home.hpp"
#include "support/failure.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace disk_quota_test {

TEST_CASE("each user's agent has a project of its own, which is never none and never a number that people give out")
{
    constexpr std::uint32_t first_large = 0x10000000; // kubelet begins at 1,048,577, people at 1
    std::set<std::uint32_t> seen;
    for (const uid_t user : {0U, 1U, 1000U, 1001U, 65534U, 100'000U, 0x0fffffffU, 0x10000000U, 0x4fffffffU, 0x50000000U, 0x50000001U,
                             0x500003e8U, 0x5ffffffeU, 0x60000000U, 1'830'600'500U, 2'000'200'000U, 0xafffffffU, 0xefffffffU}) {
        const std::uint32_t project = project_of_agent(Uid(user)).value_or(0);
        CHECK_MESSAGE((project >= first_large && project != UINT32_MAX), user);
        CHECK_MESSAGE(seen.insert(project).second, user);
    }
    CHECK(project_of_agent(Uid(1000)) == former_project_of_agent(Uid(1000))); // homes of ordinary users stay as they are
    for (const uid_t user : {0x5fffffffU, 0xf0000000U, 0xfffffffeU})
        CHECK_FALSE(project_of_agent(Uid(user)).has_value());
}

TEST_CASE("projects of agents are told from those of others by their number")
{
    CHECK(is_project_of_agents(project_of_agent(Uid(1000)).value_or(0)));
    for (const std::uint32_t other : {0U, 1U, 1'048'577U, 0x4fffffffU, 0x60000000U, UINT32_MAX})
        CHECK_FALSE(is_project_of_agents(other));
}

TEST_CASE("a file system without project quotas is told in words, and nothing is set there")
{
    const UniqueFd proc = UniqueFd::adopt(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(proc);
    CHECK(problem_of_quotas(proc) == "its file system has no project quotas");
    CHECK_FALSE(project_of(proc).has_value());
    CHECK_FALSE(passes_project_on(proc, 0));
}

TEST_CASE("without a sandbox nothing keeps files under a quota")
{
    CHECK(contains(problem_of_method(SandboxMethod::none), "choose another method"));
    for (const auto method : {SandboxMethod::systemd, SandboxMethod::bwrap, SandboxMethod::podman, SandboxMethod::docker})
        CHECK(problem_of_method(method).empty());
}

} // namespace disk_quota_test

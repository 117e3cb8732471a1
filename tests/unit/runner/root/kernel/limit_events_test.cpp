// What the kernel counted, and what becomes of it: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include "support/failure.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <fstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace limit_events_test {

namespace {

using std::chrono::hours;

const AgentEnded killed{true, SIGKILL};
const AgentEnded well{false, 0};

LimitsPolicy limits_of(const std::string &section)
{
    return parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nlimits: " + section + "\n").limits;
}

const LimitsPolicy all = limits_of("{memory: 8G, tasks: 128, runtime: 1h}");

} // namespace

TEST_CASE("the counters are read from the group's own files")
{
    const TemporaryDirectory directory;
    std::ofstream(directory.path() + "/memory.events") << "low 0\nhigh 0\nmax 91\noom 2\noom_kill 3\noom_group_kill 0\n";
    std::ofstream(directory.path() + "/pids.events") << "max 5\n";
    const LimitEvents events = read_limit_events({directory.path(), true});
    CHECK(events.killed == 3);
    CHECK(events.own_memory);
    CHECK(events.refused_tasks == 5);
}

TEST_CASE("a group that is gone, and one without these controllers, have counted nothing")
{
    const TemporaryDirectory directory;
    for (const std::string &path : {directory.path(), directory.path() + "/gone"}) {
        const LimitEvents events = read_limit_events({path, true});
        CHECK((events.killed == 0 && !events.own_memory && events.refused_tasks == 0));
    }
}

TEST_CASE("a session that ran into nothing ends without a word")
{
    CHECK(limit_notices(all, {}, well, "success", hours(2)).empty());
    CHECK(limit_notices(all, {}, killed, "signal", hours(2)).empty());
    CHECK(limit_notices(all, {0, true, 0}, well, "success", hours(2)).empty()); // it was at its limit and found room
}

TEST_CASE("a kill for memory names the limit, its place and who was killed")
{
    const auto agent = limit_notices(all, {1, true, 0}, killed, "signal", hours(0));
    REQUIRE(agent.size() == 1);
    CHECK(agent[0] ==
          "out of memory: the session reached its limit of 8G (limits.memory, p.yaml:3:18), and the kernel killed the agent, or "
          "what it ran; let it do less at once (fewer parallel jobs), or ask the administrator for more");
    const auto child = limit_notices(all, {1, true, 0}, well, "success", hours(0));
    REQUIRE(child.size() == 1);
    CHECK(has(child[0], "killed one of its processes, and the agent went on"));
    CHECK(has(limit_notices(all, {7, true, 0}, well, "success", hours(0))[0], "killed 7 of its processes"));
    CHECK(has(limit_notices({}, {1, true, 0}, killed, "signal", hours(0))[0],
              "its limit of 80% of the host's memory (the default; limits.memory in the policy sets another)"));
}

TEST_CASE("a kill in a session that was below its limit is the host's or the slice's")
{
    CHECK(has(limit_notices(all, {1, false, 0}, killed, "oom-kill", hours(0))[0],
              "out of memory: the host, or all your sessions together, had no more"));
}

TEST_CASE("an end for time is told by systemd's word, and only once the time is over")
{
    const auto told = limit_notices(all, {}, killed, "timeout", hours(1));
    REQUIRE(told.size() == 1);
    CHECK(told[0] ==
          "out of time: a session may last 1h (limits.runtime, p.yaml:3:43), and this one was ended; start pi again to go on, or "
          "ask the administrator for more");
    CHECK(limit_notices(all, {}, killed, "timeout", std::chrono::minutes(59)).empty()); // the unit was slow to stop
    CHECK(limit_notices({}, {}, killed, "timeout", hours(2)).empty());
}

TEST_CASE("starts that failed for want of tasks are counted")
{
    const auto told = limit_notices(all, {0, false, 9}, well, "success", hours(0));
    REQUIRE(told.size() == 1);
    CHECK(has(told[0], "out of processes: the session reached its limit of 128 (limits.tasks, p.yaml:3:29)"));
    CHECK(has(told[0], "9 starts of processes or threads failed inside (EAGAIN)"));
    CHECK(has(limit_notices({}, {0, false, 9}, well, "success", hours(0))[0], "its limit of 4096 (the default"));
    CHECK(limit_notices(all, {1, true, 9}, killed, "signal", hours(0)).size() == 2);
}

} // namespace limit_events_test

// Two accounts of one end: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include <csignal>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace agent_end_test {

namespace {

AgentEnded judged(int code, int status, const std::optional<ExecEnded> &said)
{
    return agent_end(SandboxResult{true, "", code, status}, said);
}

bool same(const AgentEnded &one, const AgentEnded &other)
{
    return one.by_signal == other.by_signal && one.value == other.value;
}

} // namespace

TEST_CASE("a signal that the launcher names is the agent's end where systemd saw the status that stands for it")
{
    CHECK(same(judged(CLD_EXITED, 128 + SIGTERM, ExecEnded{true, SIGTERM}), AgentEnded{true, SIGTERM}));
    CHECK(same(judged(CLD_KILLED, SIGTERM, ExecEnded{true, SIGTERM}), AgentEnded{true, SIGTERM}));
}

TEST_CASE("where systemd knows of no end the launcher's word counts, and without one it is a failure")
{
    CHECK(same(judged(0, 0, ExecEnded{false, 7}), AgentEnded{false, 7}));
    CHECK(same(judged(0, 0, ExecEnded{true, SIGTERM}), AgentEnded{true, SIGTERM}));
    CHECK(same(judged(0, 0, ExecEnded{true, 0}), AgentEnded{false, 0}));
    CHECK_THROWS_AS(static_cast<void>(judged(0, 0, std::nullopt)), Failure);
}

TEST_CASE("where systemd knows that it killed the session, and of no end, the agent was killed")
{
    for (const char *result : {"timeout", "oom-kill"}) {
        CHECK(same(agent_end({true, result, 0, 0}, std::nullopt), AgentEnded{true, SIGKILL}));
        CHECK(same(agent_end({true, result, 0, 0}, ExecEnded{false, 7}), AgentEnded{false, 7}));
    }
    CHECK(same(agent_end({true, "success", 0, 0}, std::nullopt, true), AgentEnded{true, SIGKILL}));
    CHECK(same(agent_end({true, "success", 0, 0}, ExecEnded{false, 7}, true), AgentEnded{false, 7}));
    CHECK_THROWS_AS(static_cast<void>(agent_end({true, "success", 0, 0}, std::nullopt)), Failure);
}

TEST_CASE("an agent that exits with 143 was not killed")
{
    CHECK(same(judged(CLD_EXITED, 143, ExecEnded{false, 143}), AgentEnded{false, 143}));
    CHECK(same(judged(CLD_EXITED, 143, std::nullopt), AgentEnded{false, 143}));
}

TEST_CASE("what the launcher says counts for nothing where systemd saw another end")
{
    CHECK(same(judged(CLD_EXITED, 0, ExecEnded{true, SIGTERM}), AgentEnded{false, 0}));
    CHECK(same(judged(CLD_EXITED, 1, ExecEnded{false, 0}), AgentEnded{false, 1}));
    CHECK(same(judged(CLD_KILLED, SIGKILL, ExecEnded{false, 0}), AgentEnded{true, SIGKILL}));
    CHECK(same(judged(CLD_DUMPED, SIGSEGV, ExecEnded{true, SIGTERM}), AgentEnded{true, SIGSEGV}));
    CHECK(same(judged(CLD_EXITED, 128, ExecEnded{true, 0}), AgentEnded{false, 128}));
    CHECK(same(judged(CLD_EXITED, 28, ExecEnded{true, -100}), AgentEnded{false, 28}));
}

TEST_CASE("an engine that is killed because it outlives its launcher takes nothing from the agent's own status")
{
    CHECK(same(agent_end(without_own_kill({true, "signal", CLD_KILLED, SIGKILL}), ExecEnded{false, 7}), AgentEnded{false, 7}));
    CHECK(same(agent_end(without_own_kill({true, "exit-code", CLD_EXITED, 3}), ExecEnded{false, 7}), AgentEnded{false, 3}));
    CHECK_THROWS_AS(static_cast<void>(agent_end(without_own_kill({true, "signal", CLD_KILLED, SIGKILL}), std::nullopt)), Failure);
}

} // namespace agent_end_test

// Running tools of the system: admin/program.hpp
#include "admin/program.hpp"

#include "common/error.hpp"

#include <cstdlib>
#include <doctest/doctest.h>

using namespace pi_agent;

TEST_CASE("input goes in and output comes back, larger than any pipe")
{
    const std::string input(300000, 'x');
    const auto result = run_program({"cat"}, input);
    CHECK(result.status == 0);
    CHECK(result.output == input);
}

TEST_CASE("a program that reads nothing of its input is not waited for")
{
    CHECK(run_program({"true"}, std::string(300000, 'x')).status == 0);
    CHECK(run_program({"false"}).status == 1);
}

TEST_CASE("stderr is part of the output, and a signal of the status")
{
    const auto result = run_program({"sh", "-c", "echo out; echo err >&2; kill -9 $$"});
    CHECK(result.output == "out\nerr\n");
    CHECK(result.status == 137);
}

TEST_CASE("the administrator's environment stays outside")
{
    ::setenv("SUDO_EDITOR", "x", 1); // NOLINT(concurrency-mt-unsafe)
    const auto result = run_program({"env"});
    CHECK(result.output == "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin\nLC_ALL=C\n");
}

TEST_CASE("a program that is not installed is named")
{
    CHECK_THROWS_WITH_AS(static_cast<void>(run_program({"no-such-program"})),
                         doctest::Contains("the program no-such-program is not installed"), Failure);
    CHECK_THROWS_AS(require_program("no-such-program"), Failure);
}

TEST_CASE("output becomes one harmless line")
{
    CHECK(one_line("a:1: syntax error\n  x\x1b[2J\n") == "a:1: syntax error   x\\x1b[2J");
}

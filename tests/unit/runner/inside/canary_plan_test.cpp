// What the runner tells the canary arrives as it was said: runner/inside/canary.hpp
#include "runner/inside/canary.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace canary_plan_test {

TEST_CASE("the plan comes through as arguments, whatever bytes its paths have")
{
    const CanaryPlan plan{"/srv/a=b\n\xff",
                          "/var/lib/pi-agent/users/alice/home",
                          "/home/alice",
                          {{"ipc", "4026531839"}, {"net", "1"}},
                          true,
                          {"mincore", "personality"},
                          true};
    const CanaryPlan read = parse_canary_arguments(canary_arguments(plan));
    CHECK(read.project == plan.project);
    CHECK(read.home == plan.home);
    CHECK(read.user_home == plan.user_home);
    CHECK(read.namespaces == plan.namespaces);
    CHECK(read.allowed_calls == plan.allowed_calls);
    CHECK(read.has_gate);
}

TEST_CASE("a canary that nobody sent asks nothing")
{
    for (const auto &arguments :
         std::vector<std::vector<std::string>>{{}, {"project=/x"}, {"home=/x"}, {"-p"}, {"project=/x", "home=/y", "and=more"}}) {
        const Caught caught = failure_of([&] { return parse_canary_arguments(arguments).home.size(); });
        CHECK(caught.status == 64);
        CHECK(has(caught.text, "is started by pi-agent's runner"));
    }
}

} // namespace canary_plan_test

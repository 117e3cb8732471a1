// What asks for nothing is not looked at, and who is in no session's scope is told so; all else is for a machine: runner/network_check.hpp
#include "runner/network_check.hpp"

#include "support/failure.hpp"
#include "support/forked.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

TEST_CASE("the full network needs no check; every other is looked for in the session's scope" * doctest::skip(not_root()))
{
    const std::string said = in_child([]() -> std::string {
        const AsRoot root = AsRoot::claim();
        require_network_enforced(root, NetworkPolicy{}, "x");
        std::string statuses;
        for (const auto mode : {NetworkMode::loopback, NetworkMode::none, NetworkMode::listed}) {
            const Caught caught = failure_of([&] {
                require_network_enforced(root, NetworkPolicy{mode, loopback_ranges(), {}}, "x");
                return 0;
            });
            statuses += std::to_string(caught.status) + (has(caught.text, "not in its scope") ? " " : caught.text);
        }
        return statuses;
    });
    CHECK(said == "70 70 70 ");
}

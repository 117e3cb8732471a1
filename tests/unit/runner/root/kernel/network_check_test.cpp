// Processes in the host's network namespace are no session without a network; all else is for a machine:
// runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include "support/failure.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace network_check_test {

TEST_CASE("a process in the namespace of PID 1 is found, and so is a session that has ended")
{
    struct stat facts {};
    if (::stat("/proc/1/ns/net", &facts) != 0) return skipped("PID 1's network namespace cannot be seen here");
    const auto refused = [](const std::vector<pid_t> &processes, const Position &where = {"p.yaml", 3, 1}) {
        const Caught caught = failure_of([&] {
            require_own_network(processes, NetworkPolicy{NetworkMode::none, {}, where});
            return 0;
        });
        return std::to_string(caught.status) + " " + caught.text;
    };
    CHECK(has(refused({1}), "69 this host cannot enforce the policy's network (p.yaml:3:1): "));
    CHECK(has(refused({1}), ", or change the policy"));
    const std::string by_option = refused({1}, {"--pi-agent-network=none"});
    CHECK(has(by_option, "69 this host cannot enforce --pi-agent-network=none: "));
    CHECK(has(by_option, ", or leave the option out"));
    CHECK(!has(by_option, "policy"));
    CHECK(has(refused({}), "69 the session ended before its network could be checked"));
}

TEST_CASE("a process that has ended says nothing of a namespace, and whatever else cannot be seen is an error")
{
    constexpr pid_t nobodys = 0x7ffffffe; // beyond the largest number of a process
    if (!namespace_of("1", "uts")) return skipped("PID 1's namespaces cannot be seen here");
    CHECK(!have_own_namespace({}, "uts"));
    CHECK(!have_own_namespace({nobodys}, "uts"));
    CHECK(have_own_namespace({1}, "uts") == false);
    CHECK(have_own_namespace({nobodys, 1, nobodys}, "uts") == false);
    CHECK_THROWS_AS(static_cast<void>(have_own_namespace({1}, "none")), SystemFailure);
}

TEST_CASE("what a host must have for a network is asked before there is a session" * doctest::skip(::geteuid() != 0))
{
    const auto root = AsRoot::claim();
    CHECK_NOTHROW(require_enforceable(root, NetworkPolicy{NetworkMode::full, {}, {}}, true));
    CHECK_NOTHROW(require_enforceable(root, NetworkPolicy{NetworkMode::loopback, {}, {}}, false)); // without a unit, no filters are needed
    const Caught caught = failure_of([&] {
        require_enforceable(root, NetworkPolicy{NetworkMode::loopback, {}, {}}, true);
        return 0;
    });
    if (!host_controllers().is_unified) CHECK(has(caught.text, "it has control groups of version 1, which have no packet filters"));
}

} // namespace network_check_test

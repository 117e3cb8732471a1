// What is said where there is no systemd to talk to; all else is for a machine that has one: runner/root/method/sandbox.hpp
#include "runner/root/method/sandbox.hpp"

#include "support/failure.hpp"
#include "support/forked.hpp"

#include <cstdlib>

using namespace pi_agent;
using namespace pi_agent::test;

namespace systemd_bus_test {

TEST_CASE("a host without a system bus is named as what it is, with a way to look" * doctest::skip(not_root()))
{
    const std::string said = in_child([]() -> std::string {
        ::setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus", 1);
        const AsRoot root = AsRoot::claim();
        const Caught caught = failure_of([&] { return SystemdBus(root).unit_exists("x.service"); });
        return std::to_string(caught.status) + " " + caught.text;
    });
    CHECK(has(said, "69 connecting to systemd failed: "));
    CHECK(has(said, "the administrator checks with systemctl status whether systemd and its system bus run"));
}

} // namespace systemd_bus_test

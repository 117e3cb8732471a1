// Siblings among control groups: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include <doctest/doctest.h>
#include <sstream>

using namespace pi_agent;

namespace control_group_test {

namespace {

// The sibling "agent.service" of "run.scope": its path, with the version that it is of, or "none".
std::string sibling_in(const std::string &text)
{
    std::istringstream groups(text);
    const auto group = find_sibling_group(groups, "run.scope", "agent.service");
    return group ? group->path + (group->is_unified ? " v2" : " v1") : "none";
}

} // namespace

TEST_CASE("the sibling lies in the same slice, in version 2's hierarchy")
{
    CHECK(sibling_in("0::/pi.slice/pi-agent.slice/run.scope\n") == "/sys/fs/cgroup/pi.slice/pi-agent.slice/agent.service v2");
    CHECK(sibling_in("0::/run.scope\n") == "/sys/fs/cgroup/agent.service v2");
}

TEST_CASE("where systemd uses version 1, its own hierarchy names the group")
{
    CHECK(sibling_in("4:memory:/a/run.scope\n1:name=systemd:/a/run.scope\n0::/a/run.scope\n") ==
          "/sys/fs/cgroup/systemd/a/agent.service v1");
    CHECK(sibling_in("4:memory:/a/run.scope\n") == "none");
}

TEST_CASE("a process is in a unit at the unit's whole place below systemd's own group, in each hierarchy that systemd names")
{
    const auto is_in = [](const std::string &init, const std::string &own) {
        std::istringstream of_init(init);
        std::istringstream of_own(own);
        return is_in_unit(of_own, read_systemd_tops(of_init), "/a.slice/run.scope");
    };
    CHECK(is_in("0::/init.scope\n", "0::/a.slice/run.scope\n"));
    CHECK(is_in("4:memory:/\n0::/box/payload/init.scope\n", "4:memory:/x\n0::/box/payload/a.slice/run.scope\n"));
    CHECK(is_in("1:name=systemd:/init.scope\n0::/init.scope\n", "1:name=systemd:/a.slice/run.scope\n0::/a.slice/run.scope\n"));
    CHECK_FALSE(is_in("1:name=systemd:/init.scope\n0::/init.scope\n", "1:name=systemd:/\n0::/a.slice/run.scope\n"));
    for (const char *own :
         {"", "0::/\n", "0::/run.scope\n", "0::/b.slice/run.scope\n", "0::/a.slice/run.scope/x\n", "4:memory:/a.slice/run.scope\n",
          "0::/user.slice/user@1000.service/a.slice/run.scope\n", "0::/init.scope/a.slice/run.scope\n"})
        CHECK_FALSE_MESSAGE(is_in("0::/init.scope\n", own), own);
    CHECK_FALSE(is_in("0::/\n", "0::/a.slice/run.scope\n")); // PID 1 is no systemd
}

TEST_CASE("the group of a unit is where systemd names it")
{
    const auto group = group_of_unit({{"0::", "/box"}}, "/a.slice/b.service");
    REQUIRE(group.has_value());
    CHECK(group->path == "/sys/fs/cgroup/box/a.slice/b.service");
    CHECK(group->is_unified);
    const auto named = group_of_unit({{"0::", ""}, {"1:name=systemd:", ""}}, "/a.slice/b.service");
    REQUIRE(named.has_value());
    CHECK(named->path == "/sys/fs/cgroup/systemd/a.slice/b.service");
    CHECK_FALSE(group_of_unit({}, "/a.slice/b.service").has_value());
}

TEST_CASE("a controller's files are in the group itself, and under version 1 at the same path of the controller's hierarchy")
{
    CHECK(directory_of({"/sys/fs/cgroup/a/agent.service", true}, "memory") == "/sys/fs/cgroup/a/agent.service");
    CHECK(directory_of({"/sys/fs/cgroup/systemd/a/agent.service", false}, "memory") == "/sys/fs/cgroup/memory/a/agent.service");
}

TEST_CASE("a process in another unit has no sibling, whatever its group is called")
{
    for (const char *text :
         {"", "0::/\n", "0::/a.slice\n", "0::/a/other.scope\n", "0::/a/xrun.scope\n", "0::/a/run.scope/b\n", "0::run.scope\n"})
        CHECK_MESSAGE(sibling_in(text) == "none", text);
}

} // namespace control_group_test

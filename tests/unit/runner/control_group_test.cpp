// Siblings among control groups: runner/control_group.hpp
#include "runner/control_group.hpp"

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

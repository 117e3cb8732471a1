// Groups that an agent never carries: common/decide/decision.hpp
#include "common/decide/decision.hpp"

#include "support/policy_text.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace privileged_groups_test {

TEST_CASE("root's group is privileged by its number, whatever it is called")
{
    CHECK(is_privileged_group(Gid(0)));
}

TEST_CASE("groups of this host that reach past file permissions are privileged")
{
    int found = 0;
    for (const std::string name : {"sudo", "wheel", "adm", "disk", "shadow", "kmem", "docker", "podman", "lxd", "libvirt", "kvm", "tty",
                                   "staff", "utmp", "input", "video"}) {
        const auto gid = find_group(name);
        if (!gid) continue;
        ++found;
        CHECK_MESSAGE(is_privileged_group(*gid), name);
    }
    CHECK(found > 0); // else this test checked nothing
}

TEST_CASE("groups that hand out devices, or the host's network, are privileged by name")
{
    for (const std::string name :
         {"dialout", "tape", "cdrom", "floppy", "plugdev", "vboxusers", "audio", "netdev", "bluetooth", "wireshark", "disk", "input"})
        CHECK_MESSAGE(is_privileged_group(name), name);
    for (const std::string name : {"operator", "users", "games", "render", ""})
        CHECK_FALSE_MESSAGE(is_privileged_group(name), name);
}

TEST_CASE("ordinary groups and numbers without a group are not privileged")
{
    int found = 0;
    for (const std::string name : {"users", "nogroup", "nobody", "games", "daemon"}) {
        const auto gid = find_group(name);
        if (!gid) continue;
        ++found;
        CHECK_FALSE_MESSAGE(is_privileged_group(*gid), name);
    }
    CHECK(found > 0);
    CHECK_FALSE(is_privileged_group(Gid(4123456789U)));
}

TEST_CASE("groups of administrators and of users are forbidden to an agent")
{
    const auto policy = parse("version: 1\nagent: {accounts: shared}\nusers: {'%daemon': {roots: [/srv/a]}}\n");
    const Account account{"ai", Uid(990), Gid(990), "/", {0, 1, 3, 42}};
    auto found = forbidden_groups_of(policy, account);
    std::sort(found.begin(), found.end());
    CHECK(found == std::vector<std::string>{"daemon", "root", "shadow"});
}

} // namespace privileged_groups_test

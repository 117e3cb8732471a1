// Groups that an agent never carries: common/privileged_groups.hpp
#include "common/privileged_groups.hpp"

#include "common/account.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

TEST_CASE("root's group is privileged by its number, whatever it is called")
{
    CHECK(is_privileged_group(Gid(0)));
}

TEST_CASE("groups of this host that reach past file permissions are privileged")
{
    int found = 0;
    for (const auto *name : {"sudo", "wheel", "adm", "disk", "shadow", "kmem", "docker", "podman", "lxd", "libvirt", "kvm", "tty"}) {
        const auto gid = find_group(name);
        if (!gid) continue;
        ++found;
        CHECK_MESSAGE(is_privileged_group(*gid), name);
    }
    CHECK(found > 0); // else this test checked nothing
}

TEST_CASE("ordinary groups and numbers without a group are not privileged")
{
    int found = 0;
    for (const auto *name : {"users", "nogroup", "nobody", "games", "daemon"}) {
        const auto gid = find_group(name);
        if (!gid) continue;
        ++found;
        CHECK_FALSE_MESSAGE(is_privileged_group(*gid), name);
    }
    CHECK(found > 0);
    CHECK_FALSE(is_privileged_group(Gid(4123456789U)));
}

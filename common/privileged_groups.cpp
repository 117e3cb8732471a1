// Groups whose members can reach past file permissions.
#include "common/privileged_groups.hpp"

#include "common/account.hpp"
#include "common/defence.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace {

constexpr std::array names = {"root",   "sudo",   "wheel", "admin",       "adm",     "disk", "shadow",          "kmem",
                              "docker", "podman", "lxd",   "incus-admin", "libvirt", "kvm",  "systemd-journal", "tty"};

} // namespace

bool is_privileged_group(Gid gid)
{
    if (!defence_is_on("privileged-groups")) return false;
    if (gid.value() == 0) return true;
    return std::any_of(names.begin(), names.end(), [&](const char *name) { return find_group(name) == gid; });
}

} // namespace pi_agent

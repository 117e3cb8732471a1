// The one list of groups that open the host.
#include "common/decide/privileged_groups.hpp"

#include "common/seams/defence.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace {

// In this order: root by another name; root by asking a service; raw devices, terminals, keyboard and screen, microphone, what is plugged
// in; the host's network and radios, by their services or by capturing packets; logs and secrets; private keys; the print service's
// configuration, which root follows; /usr/local, which lies on root's own PATH. docs/policy.md says the same.
constexpr std::array<std::string_view, 35> privileged_names = {
    "root",         "sudo",   "wheel",    "admin",   "docker",    "podman", "lxd",       "incus",     "incus-admin", "libvirt",
    "libvirt-qemu", "kvm",    "microk8s", "disk",    "kmem",      "tty",    "input",     "video",     "audio",       "tape",
    "cdrom",        "floppy", "dialout",  "plugdev", "vboxusers", "netdev", "bluetooth", "wireshark", "adm",         "systemd-journal",
    "utmp",         "shadow", "ssl-cert", "lpadmin", "staff"};

// What the host calls by these names, and not what it calls a number: two names may share one. Asked once, for a directory service is slow.
const std::vector<Gid> &privileged_gids()
{
    static const std::vector<Gid> gids = [] {
        std::vector<Gid> found = {Gid(0)};
        for (const auto name : privileged_names)
            if (const auto gid = find_group(std::string(name))) found.push_back(*gid);
        return found;
    }();
    return gids;
}

} // namespace

bool is_privileged_group(std::string_view name)
{
    return std::find(privileged_names.begin(), privileged_names.end(), name) != privileged_names.end();
}

bool is_privileged_group(Gid gid)
{
    if (!defence_is_on("privileged-groups")) return false;
    const auto &gids = privileged_gids();
    return std::find(gids.begin(), gids.end(), gid) != gids.end();
}

std::vector<std::string> forbidden_groups_of(const Policy &policy, const Account &agent)
{
    std::vector<std::string> found;
    for (const gid_t number : agent.groups) {
        const Gid gid(number);
        const bool authorised = defence_is_on("agents-groups") &&
                                std::any_of(policy.users.begin(), policy.users.end(),
                                            [&](const UserEntry &entry) { return entry.is_group && find_group(entry.name) == gid; });
        if (authorised || is_privileged_group(gid)) found.push_back(group_name(gid).value_or(std::to_string(number)));
    }
    return found;
}

} // namespace pi_agent

// Where the control group of a session's unit is, seen from another unit of the session: they are siblings.
#pragma once

#include <istream>
#include <optional>
#include <string>

namespace pi_agent {

struct ControlGroup {
    std::string path; // below /sys/fs/cgroup
    bool is_unified;  // version 2
};

// The group of the unit `sibling`, from the /proc/self/cgroup of a process in `own_unit`; nothing when that process is in another unit. On
// hosts with both versions the one that systemd names (cgroups(7)).
std::optional<ControlGroup> find_sibling_group(std::istream &groups, const std::string &own_unit, const std::string &sibling);

} // namespace pi_agent

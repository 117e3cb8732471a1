// Control groups: where those of systemd's units are and what is in them, and those that a session makes of its own.
#pragma once

#include "common/host/identity.hpp"

#include <istream>

namespace pi_agent {

// --- The group of a session's unit, seen from another unit of the session (they are siblings), and the processes in it.

struct ControlGroup {
    std::string path; // below /sys/fs/cgroup
    bool is_unified;  // version 2
};

// The group of the unit `sibling`, from the /proc/self/cgroup of a process in `own_unit`; empty when that process is in another unit. On
// hosts with both versions the one that systemd names (`cgroups(7)`).
std::optional<ControlGroup> find_sibling_group(std::istream &groups, const std::string &own_unit, const std::string &sibling);

// Where systemd keeps units, in each hierarchy that it names by a line of /proc/1/cgroup: the group that its own init.scope is in.
using SystemdTops = std::map<std::string, std::string>;
SystemdTops read_systemd_tops(std::istream &groups_of_init);
// The same, of this host.
SystemdTops read_systemd_tops();

// The group of the unit that systemd has at `place`, whether it exists or not; on hosts with both versions the one that systemd names.
std::optional<ControlGroup> group_of_unit(const SystemdTops &tops, const std::string &place);

// Whether a process of these groups (/proc/PID/cgroup) is in the unit that systemd has at `place`, e.g. "/a.slice/b.scope". The whole place
// counts: users name groups as they like where one is delegated to them, and may move a process of root's into it (`cgroups(7)`).
bool is_in_unit(std::istream &groups, const SystemdTops &tops, const std::string &place);

// Waits until this process is in the control group of such a unit. The kernel tells so, not a signal of systemd's, which anybody on the bus
// can imitate.
void wait_until_inside(const std::string &place, Deadline deadline);

// The group of one of a session's units, for its runner.
ControlGroup group_beside_runner(const std::string &session_id, const std::string &unit);

// Where a controller has its files for the group: version 2 has one place for all, version 1 the same path in each hierarchy.
std::string directory_of(const ControlGroup &group, const std::string &controller);

// The group's path from the top of its hierarchy, the same in all of version 1.
std::string place_in_hierarchy(const ControlGroup &group);

// Where the hierarchies are mounted, and whether the mount at `path` is a file system of this type (statfs(2) f_type). Throws SystemFailure
// where nobody can tell.
extern const char *const control_groups;
bool is_mounted_as(const std::string &path, unsigned long type);

// Kills what is in it, in one step where the kernel can (5.14), so that no fork escapes. best_effort: the caller counts again who is left.
void kill_group(const ControlGroup &group);

// Returns when the group is empty or gone. Throws Failure(system_failure) at the deadline.
void empty_group(const ControlGroup &group, Deadline deadline);

// Removes what an engine left: empty groups at this path and below it. They are in hierarchies of version 1 that systemd does not look
// after. They are also in systemd's own, where systemd keeps a group as long as one of the engine's is in it. best_effort: an empty group
// that is left does no harm.
void remove_empty_groups(const ControlGroup &group);

// The processes in it now, or in a group below it; one that has just ended may be among them. Empty where the group is gone; throws
// SystemFailure where it cannot tell.
std::vector<pid_t> processes_in(const ControlGroup &group);

// A directory of a hierarchy with the groups below it, each after its parent.
std::vector<std::string> groups_below(const std::string &directory);

// The names of the groups directly in it; empty where it has just gone. Throws SystemFailure.
std::vector<std::string> groups_in(const std::string &directory);

// The words of a file of a group, empty when it does not exist; and the number among them at `index`, empty for "max", for -1 and for a
// word that cannot be read.
std::vector<std::string> words_in(const std::string &path);
std::optional<std::uint64_t> number_in(const std::vector<std::string> &words, std::size_t index = 0);

// --- Groups of a session on a host where systemd does not make them: one for the runner, one for what it confines (`cgroups(7)`).

class OwnGroup {
public:
    // Moves this process into a group of the session's own below /sys/fs/cgroup/pi-agent. Where root cannot write the hierarchy of version
    // 2 (a container, or a host with version 1) this process stays where it is. Throws Failure(unavailable) when `user` owns the group in
    // which it then stays, or one above it, and so could freeze or kill it.
    OwnGroup(const AsRoot &root, std::string session_id, Uid user);
    OwnGroup(const OwnGroup &) = delete;
    OwnGroup &operator=(const OwnGroup &) = delete;
    // Leaves and removes the groups. best_effort: what is left is empty, and the next session's start removes it.
    ~OwnGroup();

    // A descriptor of the agent's group, for enter_group in a forked child; none where there are no groups.
    [[nodiscard]] FdRef agents() const noexcept { return agents_; }
    // The agent's group; none where there are no groups.
    [[nodiscard]] std::optional<ControlGroup> group() const;

private:
    std::string id_;
    UniqueFd agents_; // none where there are no groups
};

// Where such groups are. Makes it; false where the hierarchy of version 2 cannot be written.
constexpr const char *own_groups = "/sys/fs/cgroup/pi-agent";
bool make_own_groups();

// The group of what a session confines; none where there are no groups. Also none when it is gone: then the kernel has ended its processes.
std::optional<ControlGroup> find_own_group(const std::string &session_id);

// Moves the calling process into it. async-signal-safe; returns errno, or 0.
int enter_group(FdRef group) noexcept;

// Moves the calling process into a group beside the sessions' groups, and removes the groups of `session_id` if they are empty then. The
// first function alone is for a process that outlives the session. Both best_effort: without groups there is nothing to leave.
void step_aside() noexcept;
void leave_group(const std::string &session_id) noexcept;

} // namespace pi_agent

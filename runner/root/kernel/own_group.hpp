// Control groups of a session on a host where systemd does not make them: one for the runner, one for what it confines (`cgroups(7)`).
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/kernel/control_group.hpp"

namespace pi_agent {

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

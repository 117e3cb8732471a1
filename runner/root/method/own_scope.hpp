// The runner's own scope; the limits of a group that we make; and what a session uses.
#pragma once

#include "runner/root/method/systemd_bus.hpp"
#include "runner/wire/own_messages.hpp"

namespace pi_agent {

// --- Moves the runner out of its caller's control group.

// Asks systemd to move this process into a scope of its own, and lets it do other things meanwhile. A process that ends during the move
// leaves its scope behind, empty and for ever. So this waits for the move, whatever fails meanwhile. Only its user can then still kill it
// (cgroup.kill): sweep_empty_scopes().
class MoveIntoScope {
public:
    MoveIntoScope(SystemdBus &systemd, const std::string &scope, Uid user);
    MoveIntoScope(const MoveIntoScope &) = delete;
    MoveIntoScope &operator=(const MoveIntoScope &) = delete;
    ~MoveIntoScope();
    // Returns when this process is inside.
    void wait();

private:
    std::string under_way_; // to this place
};

// Empty scopes of runners, of all users, a bounded number at once. Throws where nobody can tell.
std::vector<std::string> find_empty_scopes(SystemdBus &systemd);

// Stops them. best_effort: what fails is recorded.
void sweep_empty_scopes(SystemdBus &systemd, const std::string &session_id) noexcept;

// --- The limits of a session whose control group we make and not systemd (`cgroups(7)`, version 2).

// Hands the controllers down to `group`, level by level from the mounted hierarchy, and writes memory, tasks and cpu there: the policy's
// limits, and the defaults. best_effort: the policy's limits are checked against the kernel afterwards
// (runner/root/kernel/host_facts.hpp), and a default holds where it can.
void limit_group(const AsRoot &root, const std::string &group, const LimitsPolicy &limits);

// --- What a running session uses at this moment, from the kernel.

// `runner` is the process that runs it. Empty where the session has no control group of its own: before its sandbox has started, after it
// has ended, and under bwrap where root cannot write the hierarchy.
SessionUsage usage_of_session(const std::string &session_id, pid_t runner);

} // namespace pi_agent

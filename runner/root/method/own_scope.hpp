// The scope that the runner asks systemd for; the limits of a group that is ours; and what a session uses.
#pragma once

#include "common/base/ids.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/method/systemd_bus.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// --- The runner's way out of its caller's control group.

// Asks systemd to move this process into a scope of its own, and lets it do other things meanwhile. A process that ends while systemd moves
// it leaves its scope behind, empty and for ever: so whatever fails meanwhile, the move is waited for. Only its user can kill it then
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

// Scopes of runners in which nobody is, of all users, a bounded number at once. Throws where it cannot be told.
std::vector<std::string> find_empty_scopes(SystemdBus &systemd);

// Stops them. best_effort: what fails is recorded.
void sweep_empty_scopes(SystemdBus &systemd, const std::string &session_id) noexcept;

// --- The limits of a session whose control group we make and not systemd (`cgroups(7)`, version 2).

// Hands the controllers down to `group`, one below another from the mounted hierarchy on, and writes memory, tasks and cpu there: what the
// policy says, and the defaults. best_effort: what is said is held against the kernel's word afterwards
// (runner/root/kernel/enforcement.hpp), and a default holds where it can.
void limit_group(const AsRoot &root, const std::string &group, const LimitsPolicy &limits);

// --- What a session that runs uses at this moment, from the kernel.

struct SessionUsage {
    std::optional<std::uint64_t> processes; // in its sandbox
    std::optional<std::uint64_t> memory;    // bytes, of them all; needs the memory controller
    std::optional<std::uint64_t> cpu_usec;  // since its start; needs control groups of version 2
};

// `runner` is the process that runs it. Nothing is known where the session has no control group of its own: before its sandbox has
// started, after it has ended, and under bwrap where root cannot write the hierarchy.
SessionUsage usage_of_session(const std::string &session_id, pid_t runner);

} // namespace pi_agent

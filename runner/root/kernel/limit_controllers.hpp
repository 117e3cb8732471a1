// What the kernel counts for a session: controllers, events, usage.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/limits.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// --- Whether this host's control groups have what the limits of the policy need, asked before anything is made for a session.

struct HostControllers {
    bool is_unified;             // control groups of version 2
    std::set<std::string> names; // "memory", "pids", "cpu": those that systemd can use
};

// From the file systems at /sys/fs/cgroup; whoever asks gets the same answer.
HostControllers host_controllers();

// A limit that the kernel cannot hold a session to.
struct IdleLimit {
    std::string key;               // "limits.memory"
    std::optional<SaidLimit> said; // by the policy: no session starts; otherwise it is a default
    std::string reason;            // with the remedy
};

// "limits.memory: 8G (FILE:LINE:COLUMN)", or whose default it is.
std::string to_string(const IdleLimit &limit);

// Pure; the time and the number of sessions need no controller.
std::vector<IdleLimit> idle_limits(const LimitsPolicy &limits, const HostControllers &host);

// The first limit of the policy that a control group has to hold; none when it says none of them.
std::optional<IdleLimit> first_for_group(const LimitsPolicy &limits);

// A share of this host's memory in which no agent starts; empty when there is none. `host_memory` in bytes.
std::string problem_of_share(const LimitsPolicy &limits, std::uint64_t host_memory);
std::uint64_t host_memory();

// Throws Failure: unavailable where a limit that the policy says would hold nobody, configuration where its share is too small here.
void require_limit_controllers(const AsRoot &root, const LimitsPolicy &limits);

// --- What a session ran into, from its control group while that is there.

// Best effort: what cannot be read has not happened.
LimitEvents read_limit_events(const ControlGroup &group);

// --- What a session's unit has used, from the kernel.

// What is not known there (a group that is gone, control groups of version 1, a kernel before 5.19 for the memory) is left out.
UnitUsage usage_of(const ControlGroup &group);

} // namespace pi_agent

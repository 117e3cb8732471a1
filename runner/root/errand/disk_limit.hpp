// Holds the agent of one user to limits.disk: by a project quota.
#pragma once

#include "runner/root/errand/receiver.hpp"
#include "runner/root/session/disk_quota.hpp"
#include "runner/root/session/state_directory.hpp"

namespace pi_agent {

// For whom, and whom the wait for the agent's own files concerns.
struct DiskHolder {
    const Account &user;
    const Account &agent; // as whom its files are looked at
    const Policy &policy;
    const std::string &session; // its id
    const SessionWatch &watch;
    std::function<void(const std::string &)> show; // what a start waits for
};

// What holds the agent from now on.
struct HeldDisk {
    std::optional<DiskQuota> quota; // the kernel does; temporary files of a session have to join its project, too
    std::string problem;            // why the kernel does not, where the policy has a limit
    std::string notice;             // for the user, at every start
};

// Sets the quota of the user's home, whose files join its project first. That takes a while once, and what it has done is known in
// `meta`. Lifts an earlier quota where the policy has no limit, or none can be enforced. Call it with the state's lock. Throws Failure
// where the policy says `refuse`, and for a file of the home that cannot join.
HeldDisk hold_to_disk_limit(const AsRoot &root, const DiskHolder &holder, const StateDirectory &state);

} // namespace pi_agent

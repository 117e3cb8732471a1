// pi-agentctl apply: makes the host follow the policy.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "admin/host/policy_files.hpp"
#include "common/base/fd.hpp"

#include <ostream>

namespace pi_agent {

struct ApplyOptions {
    bool dry_run = false;       // only say what would change
    bool try_sandbox = true;    // by a session of the canary's
    bool files_changed = false; // those of the policy, just before, by the same command
};

// Root only. Says each change on `out`; a second run has nothing to do. Ends the sessions that the policy does not allow any more, and
// keeps the policy for a rollback (admin/host/policy_files.hpp). Throws before the first change when check finds anything wrong, or when
// the sandbox, tried by a session of a user who can start pi already (admin/diagnose/canary_run.hpp), does not hold; what fails later
// leaves the steps before it done, and no new sudo rule. When anything was changed, or nobody could start pi before, it is tried at the
// end: Failure (unavailable) when it does not hold, and the sudo rule is what it was.
void run_apply(const ApplyOptions &options, std::ostream &out, std::ostream &warnings);

// The same for the files that are installed, or, in a dry run, are to be. `observer` is root; `lock` is that of apply
// (admin/host/host_lock.hpp), given away.
void apply_files(const Observer &observer, UniqueFd lock, const PolicyFiles &files, const ApplyOptions &options, std::ostream &out,
                 std::ostream &warnings);

} // namespace pi_agent

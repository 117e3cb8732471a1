// Makes the host follow a policy, from the plan to the last probe: for apply, rollback and edit.
#pragma once

#include "admin/apply/apply.hpp"
#include "admin/diagnose/user_view.hpp"
#include "admin/host/root_files.hpp"
#include "common/base/fd.hpp"

#include <optional>
#include <ostream>

namespace pi_agent {

// The policy to apply.
struct WantedPolicy {
    PolicyFiles files;                 // installed already, or installed here
    std::optional<PolicyFiles> before; // what the same command replaces, or has replaced, with them; no files: it could not be read
    UniqueFd editing;                  // the lock of edit, if the files are installed here; given away when they are
};

// `observer` is root; `lock` is the lock of apply. Plans every change first, and throws before the first one if a start could not work
// under this policy. What fails later goes back. `wrapper.enable: false` stops everything, and depends on nothing else. Returns how many
// changes it has made, or would make.
int apply_policy(const Observer &observer, UniqueFd lock, WantedPolicy wanted, const ApplyOptions &options, std::ostream &out,
                 std::ostream &warnings);

} // namespace pi_agent

// Brings a home that another version of pi-agent used to this one: tells the user, runs the migration hooks in between, changes the stamp.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/base/version.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/session/state_directory.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

// Selects the hooks, by their names VERSION-name.sh, that bring a home from `from` to `to` (from < VERSION <= to): by version, then by
// name. Throws Failure(configuration) for a name that begins with no version.
std::vector<std::string> select_migrations(const std::vector<std::string> &names, const Version &from, const Version &to);

struct MigrationPlan {
    std::string directory = build::migrations_path; // of the hooks, which root owns
    Version version = running_version();            // the version to bring the home to
    int patience_seconds = 60;                      // for each hook
};

// Whoever waits for it.
struct MigrationAudience {
    const SessionWatch &watch;
    std::function<void(const std::string &)> tell; // for the user, once
    std::function<void(const std::string &)> show_progress;
};

// Under the user's lock. The hooks run as the agent, one after the other. One that fails throws Failure(system_failure); the stamp then
// stays, so that all of them run again at the next start. A new home is stamped in silence.
void migrate_home(const AsRoot &root, const Account &agent, const StateDirectory &state, const MigrationAudience &audience,
                  const MigrationPlan &plan = {});

} // namespace pi_agent

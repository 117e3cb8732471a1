// Brings an agent's home in order: its disk limit, the version that it is of, and the user's config.
#pragma once

#include "runner/as_agent/home.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/as_user/reader.hpp"
#include "runner/root/errand/receiver.hpp"
#include "runner/root/session/scratch.hpp"
#include "runner/root/session/state_directory.hpp"

namespace pi_agent {

// --- Brings a home that another version of pi-agent used to this one: tells the user, has the migration hooks run, changes the stamp.

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

// --- Brings the user's config into the agent's home: a reader with the user's rights, a writer with the agent's, descriptors between them.

// The installed defaults, as root finds them. Throws Failure(configuration) when they do not exist, or others can change them.
UniqueFd open_defaults(const AsRoot &root);

// What is brought in and how it is merged.
struct SyncPlan {
    ReadingPlan reading;
    WritingPlan writing;
};
// `managed`: the variables that the policy sets, files included. `placeholders`: what stands for the keys of the policy's providers, which
// the session's gate holds; pi's models.json gets them with the addresses of the gate, and the user's own keys for these providers stay
// out.
SyncPlan plan_sync(const Policy &policy, const AccessRules &rules, const Account &user, const Environment &managed,
                   const AgentPlaces &agents, const std::vector<std::string> &placeholders = {});

// The sessions that the user's own agent had in `directory` (any bytes): copied where the caller asks for it, otherwise only mentioned.
// Throws Failure(denied) where the policy keeps them outside.
void plan_sessions(SyncPlan &plan, const std::string &directory, bool asked_for);

// Called now and then during the sync, with what it is doing.
using ShowProgress = std::function<void(const std::string &)>;

// `locked_settings`: gets the merged settings.json; -1 for none. Returns what was skipped or kept, one text each. Throws what reader or
// writer could not do, and when the session ends meanwhile. Root itself reads and writes nothing here.
std::vector<std::string> sync_config(const AsRoot &root, const Account &user, const Account &agent, const SyncPlan &plan,
                                     const StateDirectory &state, FdRef locked_settings, const SessionWatch &watch,
                                     const ShowProgress &show_progress);

// --- Holds the agent of one user to limits.disk: by a project quota.

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

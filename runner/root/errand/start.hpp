// What children do for a start: they bring the agent's home in order, read what policy and caller name, and ask git.
#pragma once

#include "runner/as_agent/home.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/as_user/reader.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/mount/mounts.hpp"
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

// --- Has a child, as the caller, read or copy the files that policy and caller name; and root's own read of providers' keys.

// Has a child, as the caller, copy the files that the caller names on the command line, for the session to see.
struct NamedCopies {
    HandedFiles handed;
    std::optional<DetachedMount> mount; // read-only, to be attached at copies_inside; none where nothing was copied
};

// The copies are in memory, in a file system of this session's own and of a bounded size. The caller can write to it until this returns.
// Throws what the child refuses.
NamedCopies copy_for_session(const AsRoot &root, const Account &user, const std::vector<ArgumentFile> &files, const ShownPlaces &shown,
                             const AgentPlaces &agents, const SessionWatch &watch);

// The keys that a policy keeps out of sessions: read by root, for the gate alone.

// The key in its file: one line. Throws Failure(configuration) unless root owns the file and alone can read it, and for anything but
// one line of printable bytes; it names the file, never a byte of it. Call it last: each child inherits what this process has in memory.
std::string read_provider_key(const ProviderRule &rule);

// What stands for each of these keys in the session (common/policy/host_rule.hpp), found by a child that reads them. Throws the same.
std::vector<std::string> ask_placeholders(const AsRoot &root, const std::vector<ProviderRule> &rules);

// --- Gives the agent copies of the certificate files that variables name, where its view does not show them.

// Read by a child that became the user, whoever set the variable: root reads nothing for the agent that its user may not.
CertificateFiles ask_certificate_files(const AsRoot &root, const Account &user, const std::vector<CertificateVariable> &variables,
                                       const ShownPlaces &shown, const AgentPlaces &agents);

// Writes them into the session's /run, where the agent cannot change them.
void show_certificate_files(const SessionDirectory &session, const CertificateFiles &files);

// --- The files of environment variables that a policy names: the administrator's, which only root can read, and the user's own.

// Every file must exist, be owned by root and be readable by nobody else, and only root may be able to change the directories above. Throws
// Failure(configuration) that names file and line, never a value.
std::vector<EnvAssignment> read_managed_env_files(const std::vector<PolicyPath> &files);

// The same files, without their values in this process: names and places, a stand-in for each value that is not empty, and real values only
// of variables that name files of certificates. Each child inherits what root's processes have in their memory.
std::vector<EnvAssignment> ask_env_names(const AsRoot &root, const std::vector<PolicyPath> &files);

// Read by a child that became the user. Throws what reading them throws, and when the files do not arrive within some seconds.
HostVariables ask_host_env_files(const AsRoot &root, const Account &user, const std::vector<std::string> &files, const AgentPlaces &agents);

// --- Gives the agent's git copies of the keys that the policy names, and the hosts that the user knows.

// Read by a child that became the user: root gives the agent no key that its user may not read. Empty where the policy names none.
SshFiles ask_ssh_files(const AsRoot &root, const Account &user, const AccessRules &rules, const AgentPlaces &agents);

// Writes them into the session's /run: keys for the agent's account alone. The agent can change none of it.
void show_ssh_files(const AsRoot &root, const SessionDirectory &session, const Account &agent, const SshFiles &files);

// GIT_SSH_COMMAND, in the lowest layer.
void name_ssh_command(EnvironmentInput &environment);

// GIT_CONFIG_COUNT and the variables that it counts, in the lowest layer: settings that win over the repository's own, which names a key
// that is not here.
void name_signing_key(EnvironmentInput &environment);

// --- Has the temporary directory made that a user names (--pi-agent-tmpdir).

// Its path beneath the project; empty when the request names none. Throws Failure(denied) when it is outside what is shown, or is not the
// caller's own directory.
std::string ask_user_tmpdir(const AsRoot &root, const Account &caller, const OpenedProject &project, const Request &request);

// --- Gives a session copies of single files of the host's /etc, made while systemd builds the unit.
class HostFilesReader {
public:
    // Starts the child, which has the agent's rights; does nothing in the host's own view.
    HostFilesReader(const AsRoot &root, const Account &agent, const HostView &view);
    // Waits for the child, and writes the copies, except `left_out`. Returns what the user should know.
    std::vector<std::string> show(const SessionDirectory &session, const std::vector<std::string> &left_out);

private:
    const HostView &view_;
    std::optional<Child> child_;
};

// --- Gives the agent's git what the user's git has outside, as far as it starts no program (runner/as_user/git_identity.hpp).

// Settings that win over every file. They go into the lowest layer of an environment that has no such settings yet; each other layer can
// replace them.
void add_git_settings(EnvironmentInput &environment, const std::vector<std::pair<std::string, std::string>> &settings,
                      const std::string &from);

// Names the session's git configuration, in the lowest layer of the environment: each other layer may name another file.
void name_git_config(EnvironmentInput &environment);

// The same for settings that win over the repository's own: commits and tags are not signed where the repository wants them signed and the
// session has no key. Without these settings each commit fails.
void leave_commits_unsigned(EnvironmentInput &environment);

// A child with the user's rights that asks, while systemd builds the unit.
class GitIdentityReader {
public:
    // Starts the child, in the working directory of `project`; does nothing where the policy does not want it. `repository`: where the
    // session has it and its owner is not mapped; git takes it for its own if it belongs to the caller. Otherwise empty.
    GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const HostView &view,
                      const AgentPlaces &agents, bool wanted, const std::string &repository = {});

    // Waits for the child and writes what it found into the session's /run, as the configuration of its git. The agent cannot change that.
    // `has_key`: commits are signed where the user's or the repository's settings ask for it.
    GitNotices show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config, bool has_key);

private:
    GitOfUser receive(const SessionWatch &watch);

    std::optional<Child> child_;
    std::string problem_; // why it is missing though it was wanted
    Deadline deadline_{};
};

} // namespace pi_agent

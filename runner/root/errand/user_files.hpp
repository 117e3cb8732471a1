// Has a child, as the caller, read what policy and caller name, and ask git; checks the answers; and root's own read of providers' keys.
#pragma once

#include "runner/as_user/named_files.hpp"
#include "runner/plan/git_config.hpp"
#include "runner/root/errand/receiver.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

namespace pi_agent {

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

// What stands for each of these keys in the session (common/policy/provider_table.hpp), found by a child that reads them. Throws the same.
std::vector<std::string> ask_placeholders(const AsRoot &root, const std::vector<ProviderRule> &rules);

// Has a child, as the caller, read the files that a policy names in the caller's home; checks its answers.

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

// --- Gives the agent's git what the user's git has outside, as far as it starts no program (runner/plan/git_config.hpp).

// Names the session's git configuration, in the lowest layer of the environment: each other layer may name another file.
void name_git_config(EnvironmentInput &environment);

// The same for settings that win over the repository's own: commits and tags are not signed where the repository wants them signed and the
// session has no key. Without these settings each commit fails.
void leave_commits_unsigned(EnvironmentInput &environment);

// Notices for the user: at each start, and once for the repository.
struct GitNotices {
    std::vector<std::string> always;
    std::vector<std::string> once;
    GitSigning unsigned_for = GitSigning::none; // whose settings ask for signatures that the session cannot make
};

// A child with the user's rights that asks, while systemd builds the unit.
class GitIdentityReader {
public:
    // Starts the child, in the working directory of `project`; does nothing where the policy does not want it.
    GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const AgentPlaces &agents, bool wanted);

    // Waits for the child and writes what it found into the session's /run, as the configuration of its git. The agent cannot change that.
    // `has_key`: commits are signed where the user's or the repository's settings ask for it. `repository`: where
    // the session has it and its owner is not mapped; git takes it for its own if it belongs to the caller. Otherwise empty.
    GitNotices show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config, bool has_key,
                    const std::string &repository = {});

private:
    FoundIdentity receive(const SessionWatch &watch);

    std::optional<Child> child_;
    std::string problem_; // why it is missing though it was wanted
    Deadline deadline_{};
};

} // namespace pi_agent

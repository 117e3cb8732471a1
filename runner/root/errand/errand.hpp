// Children that become another account: how they start and answer, and what they do for a start.
#pragma once

#include "runner/as_agent/home.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/as_user/reader.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <poll.h>

namespace pi_agent {

// --- A forked child that becomes somebody else, does one task, and answers over a channel. Root never waits for it without a deadline
// (design rule 8).

constexpr int child_patience_seconds = 5; // without progress

// With end_with_it the child is the first process of a PID namespace: all that it starts, by itself or because somebody makes it, ends with
// it, whatever it does (pid_namespaces(7)). For a task that runs a program of the host's, which its user can trace (ptrace(2)).
enum class Descendants { may_outlive_it, end_with_it };

// Owns the child: kills it at the latest when this object goes, and reaps it unless the kernel keeps it.
class Child {
public:
    // Forks. The child closes every descriptor except its channel and `keep`, becomes `identity` for good, and runs `task`. An exception
    // from `task` reaches the parent as a failure. `keep` are borrowed: the numbers are the same in the child. `name` is for error
    // messages.
    Child(const AsRoot &root, std::string name, const Account &identity, const std::vector<int> &keep,
          const std::function<void(const AsUser &, FdRef channel)> &task, Descendants descendants = Descendants::may_outlive_it);
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;
    // The child stays what this process is, with all its descriptors, and answers with what `task` returns (receive_long).
    Child(const AsRoot &root, std::string name, const std::function<std::string()> &task);
    ~Child();

    // The next answer. Throws the child's own Failure, or Failure(system_failure) when it died or made no progress in time.
    Packet receive();
    // What send_long_answer sent. The patience covers all of it: the child's user may stop it between two pieces. `meanwhile` is called now
    // and then until something comes.
    std::string receive_long(int patience_seconds, const std::function<void()> &meanwhile = {});
    // The same for one message; empty when the child only reported progress.
    std::optional<Packet> receive_one() { return receive_one(in_seconds(child_patience_seconds), child_patience_seconds); }
    // Closes the channel, which tells a task that it must end something, and waits for two seconds at most. Nothing can be received any
    // more.
    void hang_up() noexcept;
    // What it last said that it is doing; empty when it has said nothing yet.
    [[nodiscard]] const std::string &progress() const noexcept { return progress_; }
    [[nodiscard]] FdRef channel() const noexcept { return channel_; }

private:
    void start(bool apart, const std::function<void(FdRef)> &run);
    std::optional<Packet> receive_one(Deadline deadline, int patience_seconds);

    std::string name_;
    pid_t pid_ = -1;
    UniqueFd channel_;
    std::string progress_;
};

// --- One task that another account does, with one answer.

// `as`: the account that does it. `keep` are borrowed: the numbers are the same in the child.
struct Errand {
    std::string name; // for error messages
    const Account &as;
    std::vector<int> keep = {};
};

// The answer of a task that only reports that it is done.
struct Done {
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};

// A list of texts.
struct Texts {
    std::vector<std::string> texts;
    static void fields(auto &archive, auto &self) { archive(self.texts); }
};

// `task` gets the child's proof that it is `errand.as`, and returns an answer (common/base/channel.hpp). The parent decodes what arrives,
// and `decode` refuses what it did not ask for: its user may control the child. Throws the child's own Failure, and Failure(system_failure)
// when it died or did not answer within child_patience_seconds.
template <typename Task, typename Decode>
auto ask(const AsRoot &root, const Errand &errand, const Task &task, const Decode &decode)
{
    Child child(root, errand.name, errand.as, errand.keep,
                [&](const AsUser &self, FdRef channel) { send_long_answer(channel, encode(task(self))); });
    return decode(child.receive_long(child_patience_seconds));
}

// For an answer that can be decoded from its bytes alone.
template <typename Answer, typename Task>
Answer ask(const AsRoot &root, const Errand &errand, const Task &task)
{
    return ask(root, errand, task, decode_fields<Answer>);
}

// --- The runner's end of the caller's side (runner/as_user/project.hpp).

// What the wrapper's side can report while a session runs.
struct StdioHandedOver {};
struct WrapperGone {};                                                         // or it broke the protocol
using ReceiverEvent = std::variant<StdioHandedOver, WrapperGone, std::string>; // a message's bytes, without descriptors

// Owns the child. In this order: request(), then the answers of open_as_caller (runner/as_user/project.hpp)
// and of send_home (runner/wire/user_files.hpp), then start_handover() and receive().
class Receiver {
public:
    // `wrapper` is borrowed; from now on nobody else may receive from it.
    Receiver(const AsRoot &root, const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper);

    // Waits for the request and checks its standard descriptors. Throws what is wrong with it.
    Request request();
    // Makes the child send its standard descriptors to pi-agent-exec over `control` and let go of them. Does not wait: an event reports it.
    void start_handover(FdRef control) { send_packet(child_.channel(), "S", {control.get()}, in_seconds(child_patience_seconds)); }
    // The next event; called when channel() has input.
    ReceiverEvent receive();
    [[nodiscard]] FdRef channel() const noexcept { return child_.channel(); }
    [[nodiscard]] Child &child() noexcept { return child_; }

private:
    Child child_;
};

// --- What ends a session that is still being prepared, looked at wherever preparation waits.

// The user asked for the end (Ctrl-C) before there was an agent: the wrapper must end as by this signal. Not a Failure, because nothing
// went wrong.
struct EndedBySignal {
    int number;
};

// Blocks the signals that end the runner; supervise reads them. Call it before the sandbox exists, so that none is lost.
UniqueFd watch_termination();

// All descriptors are borrowed.
struct SessionWatch {
    FdRef wrapper;                                 // its socket: hung up
    FdRef termination;                             // from watch_termination: readable
    FdRef receiver = FdRef(-1);                    // its channel: readable
    std::function<void()> hear_receiver = nullptr; // called then; throws when it heard of the end

    // Waits until one of `channels` has something to read, at most until `deadline`, and returns which. Throws Failure, or what
    // hear_receiver throws, when the session must end.
    [[nodiscard]] std::optional<std::size_t> wait(const std::vector<FdRef> &channels, Deadline deadline) const;
    // Only looks for the end.
    void check() const { static_cast<void>(wait({}, Clock::now())); }
};

// Collects what the wrapper sends meanwhile: a request for the end counts at once, the rest waits for the agent.
class EarlyMessages {
public:
    explicit EarlyMessages(Receiver &receiver) : receiver_(receiver) {}

    // Reads the next one, when the receiver's channel has input. Throws EndedBySignal, or Failure when the wrapper is gone.
    void hear();
    [[nodiscard]] const std::vector<WrapperMessage> &messages() const noexcept { return messages_; }

private:
    Receiver &receiver_;
    std::vector<WrapperMessage> messages_;
};

// --- Hands the launch record over, with the values of the policy's files of variables. Each child of the runner's inherits its memory, so
// only one process of root's gets these values: it does this alone and then ends.

// `record` is complete, except for its environment where the policy has such files: the environment is then composed again from
// `environment`. `terminal` and `mode_changer` as for send_launch. Throws what keeps it from being sent.
void hand_record_over(const AsRoot &root, const Policy &policy, const EnvironmentInput &environment, const LaunchRecord &record,
                      FdRef control, FdRef terminal, FdRef mode_changer);

// --- Decides on the working directory and the roots that a child which is the caller has opened (design rules 6 and 7).

// A directory that the session shows writable, as the caller opened it in the host's mount namespace.
struct ShownTree {
    std::string root_path;       // of the allowed root that holds it: canonical, from the descriptor; in the property alphabet
    std::string inside;          // beneath that root, "" for the root itself; any bytes
    UniqueFd directory;          // O_PATH
    std::optional<Gid> by_group; // that granted the root
    // On the host; any bytes.
    [[nodiscard]] std::string path() const { return inside.empty() ? root_path : root_path + "/" + inside; }
};

// Whether the tree is still where it was opened.
bool is_at_its_path(const ShownTree &tree);

struct OpenedProject {
    ShownTree shown;
    UniqueFd root_directory; // O_PATH, of the root of which `shown` is a part; empty where all of it is shown
    std::string below;       // the working directory beneath it; any bytes
    std::uint64_t cwd_device = 0;
    std::uint64_t cwd_inode = 0;
    std::optional<std::string> repository;  // the nearest beneath `shown` that holds the working directory; "" for all of it
    std::vector<ShownTree> git_directories; // of that repository, where they are in another place, and another root
    std::vector<std::string> notices;       // of git directories that are not shown, and why
    std::vector<AgentPlace> roots;          // all roots of the caller that exist
    std::vector<AgentPlace> closed;         // of these, inside its root and with other rules: this session does not see them
    Policy policy;                          // as it holds for this start
    std::size_t root = 0;                   // which of them holds the working directory, in the order of their rules
    // On the host; any bytes. The repository's is empty where the session has no repository.
    [[nodiscard]] std::string directory() const { return below.empty() ? shown.path() : join_path(shown.path(), below); }
    [[nodiscard]] std::string repository_path() const;
    // The project first. Valid as long as this object lives and is not changed.
    [[nodiscard]] std::vector<const ShownTree *> trees() const;
};

// Takes what `child` sends in open_as_caller (runner/as_user/project.hpp), and decides on what was opened. `callers` is the policy as it
// holds for the caller.
std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &all, const HostView &view,
                                                  Policy callers, const AskedOfStart &asked);

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

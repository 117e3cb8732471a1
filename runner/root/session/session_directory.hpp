// A session's directory and record; and what is kept on disk: the state of each user, and the temporary files of sessions.
#pragma once

#include "common/base/files.hpp"
#include "common/host/identity.hpp"
#include "common/record/record_event.hpp"
#include "runner/plan/host_view.hpp"

#include <exception>

namespace pi_agent {

// --- Sessions' directories below /run/pi-agent/sessions: mount points only, on a small tmpfs that all share. Also who owns and who runs
// them.

// An id that nobody can guess (runner/wire/answer.hpp).
std::string make_session_id();

// /run/pi-agent, for root alone; made when it is missing.
UniqueFd open_runtime_directory();

constexpr const char *sessions_directory = "/run/pi-agent/sessions";
// While this is held, nobody removes placeholders of this user's sessions; none where somebody still does at the deadline. A session first
// writes its own placeholders down and then takes this for a moment: after that it knows that every remover has seen them.
UniqueFd lock_placeholders(Uid user, Deadline deadline);
// The paths of the placeholders of all other sessions.
std::set<std::string> placeholders_of_others(const std::string &id);
// The placeholders of one session.
std::vector<std::string> recorded_placeholders(FdRef session);

// Symlinks of a session's directory that lead nowhere: their texts are the uid of the session's user, and the process id of its runner.
constexpr const char *user_link = "user";
constexpr const char *runner_link = "runner";
constexpr const char *held_link = "held"; // the kernel holds its agent to limits.disk, and it takes no file out of that quota

// In a session's directory: symlinks whose texts are the paths of its placeholders, parents first.
constexpr const char *placeholders_directory = "placeholders";

// The directory of all sessions, on the tmpfs that they share and nowhere else; ENOENT before the first one since boot.
UniqueFd open_sessions();
// The directory of one session; none when it does not exist. Throws SystemFailure where it cannot be opened for another reason.
UniqueFd try_open_session(FdRef sessions, const std::string &id);

// The directory of one session. Locked until unlock() or the end of this object, so that a sweep can tell it from an orphan's.
class SessionDirectory {
public:
    static SessionDirectory create(const AsRoot &root, const std::string &id, Uid user);
    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    // Makes the directories of `relative` (root-owned, 0755) and returns the last one, for mounting on.
    UniqueFd make_directory(const std::string &relative) const; // NOLINT(modernize-use-nodiscard): often only the directory is wanted
    // A new, empty file, readable by all; O_RDWR.
    [[nodiscard]] UniqueFd make_file(const std::string &name) const;
    // A new file with this content.
    void write_file(const std::string &name, const std::string &content) const { write_whole(make_file(name), content, "/" + name); }
    // The same where the file may already exist, empty, because the program that builds the sandbox shows each file by itself.
    [[nodiscard]] UniqueFd make_late_file(const std::string &name) const;
    [[nodiscard]] bool has(const std::string &name) const;
    void make_link(const std::string &relative, const std::string &target) const;
    // The session is over: it does not count any more, and whoever removes it need not wait.
    void unlock() const;

private:
    std::string path_;
    UniqueFd fd_;
};

// Removes what else a session left, found by the symlinks of its directory. False when some of that stays, for the next one that finds the
// symlinks.
using RemoveRest = std::function<bool(FdRef session)>;

enum class Leave { nothing, directory }; // the directory with its symlinks and its record

// Unmounts and removes what a session left; finding nothing is fine. It removes only directories, symlinks that it made, and mount points.
// Calls `rest` when nothing is mounted any more and the symlinks still exist; they stay where it says so.
void remove_session(const AsRoot &root, const std::string &id, const RemoveRest &rest = {}, Leave leave = Leave::nothing);

// Whether this session has a directory. Throws SystemFailure where nobody can tell.
bool session_exists(const AsRoot &root, const std::string &id);

// The text of a symlink that make_link made in a session's directory; empty when it does not exist. Throws SystemFailure as above.
std::string read_session_link(FdRef session, const char *name);

// --- Which sessions there are. A live runner holds the lock of its session's directory.

// The user of the session, and the process that runs it, or did. Empty where that is not recorded yet, or no longer.
std::optional<Uid> session_user(FdRef session);
std::optional<pid_t> session_runner(FdRef session);
// Whether that process is a runner, of this or of another session: any process may have its number by now.
bool is_runner(pid_t process);
bool has_living_runner(const std::string &session_id);

// Sessions of a user whose runners live, the caller's own included. Takes no lock that anybody waits for: each start makes its directory
// and then counts. So of starts at the same time the last one sees all the others.
std::size_t count_sessions(const AsRoot &root, Uid user);

// True when a session of `user` other than `id` is prepared, or runs, without `name` in its directory: "settings.json" (make_file), its
// locked settings, or held_link. Call it under the lock of the user's state, in which sessions are prepared. One that waits for that lock
// does not count: only its user decides how long it waits.
bool has_session_without(const AsRoot &root, const char *name, Uid user, const std::string &id);

// Sessions whose runner is gone (their lock is free).
std::vector<std::string> find_orphans(const AsRoot &root);

// Sessions of all users whose runners live.
struct LiveSession {
    std::string id;
    Uid user;
};
std::vector<LiveSession> live_sessions(const AsRoot &root);

// --- Tells a start that is under way that `pi-agentctl apply` or `remove` changed this host.

// Differs from an earlier one when mark_host_changed() was called meanwhile. Throws SystemFailure where nobody can tell.
std::string host_stamp();
// A start that began before this ends, or already shows as a session: call this first, and look for session directories afterwards.
void mark_host_changed(const AsRoot &root);

// A drained host: no session starts until the administrator ends that, or the host is booted (decision 80). Sessions that live go on.

// --- What `pi-agentctl drain` leaves for every start, in /run/pi-agent, which only root can enter.

constexpr const char *drain_name = "drain";

struct Drain {
    std::string message;      // the administrator's words for users, harmless; may be empty
    std::uint64_t since_usec; // since 1970
};

// None while sessions may start. Throws SystemFailure where nobody can tell.
std::optional<Drain> find_drain(const AsRoot &root);

// A start that is under way then sees it, or shows as a session already: it makes its directory first and looks afterwards. So call this
// first, and look for sessions afterwards.
void begin_drain(const AsRoot &root, const std::string &message);

// False where nothing was to end.
bool end_drain(const AsRoot &root);

// --- Root's own tries of the sandbox go on meanwhile (apply, doctor): they start a canary as a user.

// While the descriptor is open, canaries of this user may start. Leaves no trace: a lock goes with its holder.
UniqueFd let_canary_start(const AsRoot &root, Uid user);
bool may_canary_start(const AsRoot &root, Uid user);

// --- Where the runner's events go: the journal, or on a host without one a file that root owns. They hold no prompts and no values, and
// every foreign byte is escaped.

constexpr int journal_patience_milliseconds = 1000;

// Throws Failure(system_failure) when neither takes it. `identifier` is the program that reports the event.
void record_event(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier = "pi-agent-runner",
                  int patience_milliseconds = journal_patience_milliseconds);

// best_effort: a problem beside a session, in the words `text` and `more`. `id` is the session's, or names what else it is about.
void record_problem(std::string_view id, std::string_view text, std::string_view more = {}) noexcept;

// best_effort: runs `step`. Records an exception from it as such a problem, after `words`, and returns false.
template <typename Step>
bool attempt_recorded(std::string_view id, const Step &step, std::string_view words = {})
{
    try {
        step();
        return true;
    } catch (const std::exception &failure) {
        record_problem(id, words, failure.what());
        return false;
    }
}

// --- Files of events, one JSON line each; at a bound a file is moved to STEM.full-NUMBER, which replaces the earlier one.

// On a host without a journal: of all, and only root can read it.
constexpr const char *record_directory = "/var/log/pi-agent";
constexpr const char *record_file_path = "/var/log/pi-agent/record.jsonl";
constexpr const char *record_stem = "record";

// What is about one user besides, on every host: that user can read it, and root alone write. Connections that were denied are apart.
constexpr const char *own_records_path = "/var/lib/pi-agent/records";
constexpr const char *denials_stem = "denials";
std::string own_record_directory(const Account &user);
// In which a user's own process keeps checkpoints (common/undo). Throws if it belongs to somebody else.
void make_undo_directory(const Account &user);

// --- What is recorded about one start: that it was refused, or that a session started and, once, that it ended.

// For the runner. If the runner is killed before it records the end, record_end_of_killed() does.
class SessionRecord {
public:
    SessionRecord() = default;
    SessionRecord(const SessionRecord &) = delete;
    SessionRecord &operator=(const SessionRecord &) = delete;
    ~SessionRecord() = default;

    // Filled in as facts become known. An entry about a refused start lacks those that are not known yet.
    void concerns(std::optional<Uid> uid) { subject_.uid = uid; } // SUDO_UID alone says so
    void concerns(const Account &caller)
    {
        subject_.user = caller.name;
        subject_.uid = caller.uid;
    }
    void names(const std::string &session_id) { subject_.session = session_id; }
    void runs_in(SandboxMethod method);
    void runs(Program program) { subject_.program = to_string(program); }
    // Paths of any bytes; `repository` is empty where the session has no repository.
    void works_in(const std::string &directory, const std::string &repository)
    {
        subject_.directory = directory;
        subject_.repository = repository;
    }
    // Its git does not sign, though the user's settings or the repository's ask for it.
    void commits_are_unsigned() { commits_unsigned_ = true; }
    // Hosts that its user added, as the policy lets them.
    void adds(const std::vector<std::string> &hosts);
    // Why it ends, where somebody asked for that; recorded instead of how it ended.
    void because(const std::string &reason) { asked_ = reason; }

    // Call it right before the agent starts. Throws Failure when no record takes it: then the agent must not start.
    void started(const SessionDirectory &session, const Account &agent, const std::string &project, Program program);
    // What the sandbox has used until now. The launcher's report of the agent's end is a hostile peer's hint: usage taken because of it
    // counts only where the end has followed at once.
    void take_usage(const UnitUsage &usage);
    [[nodiscard]] bool knows_usage() const { return usage_.cpu_usec && Clock::now() < usage_counts_until_; }
    // What its gate tells while it runs. best_effort, and without waiting for a busy journal: it comes from what the agent does.
    void denied_connection(const ConnectionDeniedEvent &event) const noexcept;
    // How the session ended. Throws Failure when no record takes it.
    void ended(const AgentEnded &how) { end({how, asked_, {}, {}, {}}); }
    // Why there was no session, or why the one that started is over; records the same reason once. Throws as above.
    void failed(ExitStatus status, const std::string &reason, FailureKind kind = FailureKind::other);

private:
    void end(EndedEvent event);

    RecordSubject subject_;
    std::string asked_;
    std::string recorded_failure_;
    UnitUsage usage_;
    Deadline usage_counts_until_{};
    UniqueFd directory_; // of the session
    UniqueFd open_end_;  // locked as long as we must record `ended`
    bool started_ = false;
    bool commits_unsigned_ = false;
    std::string added_hosts_;
    std::uint64_t started_usec_ = 0;
};

// A session that has started and whose end is not recorded yet: who owns it, and for how long it has been running.
struct OpenRecord {
    RecordSubject subject;
    std::uint64_t running_usec{};
};
// None before the agent starts, and when the end is recorded.
std::optional<OpenRecord> read_open_record(FdRef session);

// Whether the end of a session is not recorded yet.
bool has_open_end(FdRef session);

// Records the end of a session whose runner is gone, unless it is recorded already. Waits for a runner that lives, because it knows more;
// false when that one does not record it by the deadline.
[[nodiscard]] bool record_end_of_killed(const AsRoot &root, const std::string &session_id, Deadline deadline);

// --- Project quotas of a file system (quotactl(2)): whether the kernel enforces them, and the limit of one project, by descriptor.

// What holds the agent of one user on a file system: all files of a project count together.
struct DiskQuota {
    std::uint32_t project = 0;
    std::uint64_t bytes = 0;
};

// What an administrator does about a file system without them.
constexpr const char *quota_remedy =
    "mount an ext4 (with the features 'project' and 'quota') or an XFS there, with the option 'prjquota' (docs/concepts/disk.md)";

// The project of a user's agent: one number for each user, never one below 2^28, which people, kubelet and container engines give out.
// None for the few users whom none is left for: from the number 0xf0000000 on, and one more.
std::optional<std::uint32_t> project_of_agent(Uid user) noexcept;
// The number that an earlier version gave, which for large numbers of users may be an administrator's.
std::uint32_t former_project_of_agent(Uid user) noexcept;
// Why the project cannot be an agent's, in words; empty if it can.
std::string problem_of_number(const AsRoot &root, std::uint32_t project);
// Whether it looks like one of these, of whatever user.
bool is_project_of_agents(std::uint32_t project) noexcept;

// Why the kernel holds nobody to a project quota on the file system of `directory`, in words; empty if it does. Any account may ask.
std::string problem_of_quotas(FdRef directory);

// Why no quota can hold agents under this method; empty if one can.
std::string problem_of_method(SandboxMethod method);

// Sets the limit of a project on the file system of `directory`; 0 bytes lift it. `path` is for messages. As many files fit as the
// bytes have blocks of 4 KiB, for a file without content takes none.
void set_disk_limit(const AsRoot &root, FdRef directory, const DiskQuota &quota, const std::string &path);

// The same with no limit, where there may be no quotas any more.
void lift_disk_limit(const AsRoot &root, FdRef directory, std::uint32_t project, const std::string &path);

// What the project has on that file system now. None if the kernel does not say.
struct DiskUse {
    std::uint64_t bytes = 0;
    std::uint64_t limit = 0; // 0: none
};
std::optional<DiskUse> disk_use(const AsRoot &root, FdRef directory, std::uint32_t project);

// --- The temporary directories of one session: /tmp and /var/tmp of its view.

// Below the state directory, root's own: holds a directory for each session, named by its id.
constexpr const char *scratch_parent = "sessions";
constexpr const char *scratch_link = "on-disk"; // in the session's directory; leads nowhere: its text is the path to remove

// Makes the temporary directories and mounts them at `scratch` in the session's directory, as "tmp" and "var-tmp". On disk they are in
// STATE_DIR/sessions/ID. The session's directory records that path first, so that the removal finds it. Returns the directory that holds
// both, locked until release_scratch() or the end of this process. On disk they join the project of `quota`, if there is one. Throws
// Failure(system_failure) in words when nothing fits on the file system any more.
UniqueFd make_scratch(const AsRoot &root, const SessionDirectory &session, ScratchKind kind, const std::string &state_dir,
                      const std::string &id, const Account &agent, const std::optional<DiskQuota> &quota = std::nullopt);
// STATE_DIR/sessions, made if need be.
UniqueFd open_scratch_parent(const AsRoot &root, const std::string &state_dir);
// Call it when no process of the session runs any more: a process that removes what it left need not wait for this one.
void release_scratch(FdRef scratch) noexcept;

// The two directories of an overlay's changes in what make_scratch returned, by name: the agent owns `upper`, and root owns `work`. Only
// root reaches them, by any path. The overlay shows none of the `masked` names, whatever is below it: each is a whiteout.
struct CacheLayer {
    std::string upper, work;
};
CacheLayer make_cache_layer(FdRef scratch, std::size_t number, const Account &agent, const std::vector<std::string> &masked);

// True for the name of a `work` directory, which holds the kernel's own "work"; the agent owns the session's other directories.
bool is_cache_work(const std::string &name) noexcept;

// What to tell the user when the file system behind `directory` is nearly full; `what` names what is stored there.
std::optional<std::string> nearly_full(FdRef directory, const std::string &what);

// --- Waits for a lock that another process holds, with a deadline.

// Locks a file for this description alone (flock(2), LOCK_EX). False when somebody else holds it until the deadline. `waiting` is called
// between two tries. Throws SystemFailure, in which `what` names the file, when it cannot be locked.
bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting = {});

// --- File systems of another host: that host and the network decide what locks and owners of files mean there.

// "NFS", …; empty for a file system of this host. `type` as in statfs(2).
std::string network_file_system(unsigned long type);

// Throws Failure(configuration) where `directory` is on one; `path` names it, and `key` is the key of the policy that says so.
void require_own_file_system(FdRef directory, const std::string &path, const std::string &key);

// --- The state of one user.

// Root owns every component of these paths except the last one of `home`, so the agent cannot exchange them.
struct StateDirectory {
    std::string home_path; // <state_dir>/users/USER/home
    UniqueFd home;         // O_RDONLY directory
    UniqueFd staging;      // of the agent's account too, but no agent sees it: files that are being made
    UniqueFd meta;         // for root alone
    UniqueFd lock;         // held while state is touched; release by reset()
};

// Creates what is missing, checks owners and modes, and takes the user's lock. Throws Failure(configuration) when the home belongs to
// another account, Failure(limit) when another start of the same user holds the lock for more than five seconds.
// `wait` is called while it waits for that lock.
StateDirectory open_state_directory(const AsRoot &root, const std::string &state_dir, const std::string &user, const Account &agent,
                                    const std::function<void()> &wait);

// Opens `name` beneath a directory that only root can write, creating it first if need be. Changes the owner only of a directory that was
// just made, or was left half made.
UniqueFd ensure_state_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path);

// A file in `meta`; `name` is a constant of our code. None when it does not exist and `flags` create none.
UniqueFd open_meta_file(const StateDirectory &state, const char *name, int flags = O_RDWR | O_CREAT);
// Its content, at most `limit` bytes; none when there is no such file.
std::optional<std::string> read_meta_file(const StateDirectory &state, const char *name, std::size_t limit);
// The file has the old content or the new one, even if the host stops meanwhile.
void write_meta_file(const StateDirectory &state, const char *name, const std::string &content);
// Replaces `name` by `fresh`.
void replace_meta_file(const StateDirectory &state, const char *fresh, const char *name);

// --- Which pi-agent used a home last. Root's stamp, beside the home, decides; the agent has a copy in its home.

// None for a home that was never used. Throws Failure(configuration) when the stamp does not hold a version: nobody guesses which
// migrations a home has seen.
std::optional<Version> read_stamp(const StateDirectory &state);

void write_stamp(const StateDirectory &state, const Version &version);

// --- Sends messages to the wrapper. The user can stop the wrapper, and the wrapper need not read. So root waits once for a wrapper
// that does not read, and not again until that wrapper has read something.

class ToWrapper {
public:
    explicit ToWrapper(FdRef wrapper) noexcept : wrapper_(wrapper) {}

    // best_effort: a wrapper that is gone ends the session by itself, and one that does not read misses the message.
    void tell(const RunnerMessage &message) noexcept;
    void tell_all(const std::vector<std::string> &notices) noexcept;
    // Sends without waiting, whatever came before. False when the message did not get there.
    bool tell_at_once(const RunnerMessage &message) noexcept;

private:
    FdRef wrapper_;
    bool reads_ = true;
};

// --- Notices that would be the same at every start: sent once, or once for each place, and again when they change.

// Which of `notices` to send now: all of them, or nothing where the last start had the same ones about `about` (a file of the user's meta).
// A notice that was absent at a start and is back is sent again: somebody had fixed its cause. With `always`, all of them.
std::vector<std::string> untold(const StateDirectory &state, const char *about, const std::vector<std::string> &notices, bool always);

// The same, once for each `place`: all of them, or nothing where any earlier start sent exactly these about this place.
std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always);

} // namespace pi_agent

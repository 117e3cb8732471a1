// Sessions' directories below /run/pi-agent/sessions: mount points only, on a small tmpfs that all share. Also who owns and who runs them.
#pragma once

#include "common/host/identity.hpp"

#include "runner/wire/answer.hpp"

#include <set>

namespace pi_agent {

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
    void write_file(const std::string &name, const std::string &content) const;
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

} // namespace pi_agent

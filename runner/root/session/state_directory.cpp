// A user's state directory, the locks on its files, messages to the wrapper, and which version used a home last.
#include "runner/root/session/session_directory.hpp"

#include "runner/as_agent/writer.hpp"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <thread>

namespace pi_agent {

namespace {

constexpr int lock_patience_seconds = 5;

bool is_empty(FdRef directory)
{
    auto stream = DirectoryStream::reopened(directory);
    if (!stream) throw_errno("listing a state directory");
    return stream.next() == nullptr && errno == 0;
}

// A start may end between making a directory and giving it away, and leave this. Only root can have put anything there since.
bool is_half_made(FdRef directory, const struct stat &facts)
{
    return facts.st_uid == 0 && facts.st_gid == 0 && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0 && is_empty(directory);
}

UniqueFd take_lock(FdRef meta, const std::string &user, const std::function<void()> &wait)
{
    UniqueFd lock = open_or_throw("opening the state lock of " + user, meta, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!lock_until(lock, in_seconds(lock_patience_seconds), "the state of " + user, wait))
        throw Failure(FailureKind::busy, "another start of the agent of " + user + " has been preparing for more than " +
                                             std::to_string(lock_patience_seconds) + " seconds; try again (pgrep -a pi-agent shows it)");
    return lock;
}

// Every level may be a mount of its own. Look at it before asking it for a lock, an owner or a mode.
UniqueFd ensure_own_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path)
{
    const UniqueFd there = open_at(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (there) require_own_file_system(there, path, "agent.state_dir");
    return ensure_state_directory(parent, name, mode, uid, gid, path);
}

// Only apply and a finished move make `users`. Otherwise a start would make empty homes on a directory whose file system is not mounted, or
// beside homes that are still at another place.
void require_in_use(const UniqueFd &top, const std::string &state_dir)
{
    if (top && (has_name(top, "users", "looking for " + state_dir + "/users") || !defence_is_on("state-in-use"))) return;
    throw Failure(FailureKind::agent_home,
                  "the agents' homes are not in " + state_dir +
                      " (agent.state_dir); ask the administrator to mount its file system, or after a change of that key to run 'sudo "
                      "pi-agentctl state move'; where no homes are missing, 'sudo pi-agentctl apply --no-canary' makes the directory");
}

constexpr int wrapper_patience_seconds = 2;

bool send(FdRef wrapper, const RunnerMessage &message, Deadline deadline) noexcept
{
    try {
        send_packet(wrapper, encode(message), {}, deadline);
        return true;
    } catch (const std::exception &) { // best_effort: see the header
        return false;
    }
}

constexpr std::size_t marks_limit = 4096; // bytes: some two hundred places

std::string mark_of(const std::vector<std::string> &notices)
{
    return std::to_string(std::hash<std::string>()(joined(notices, "", [](const auto &notice) { return notice + '\n'; })));
}

// A file that root owns, in a directory for root alone. It has no lock: two starts at the same time may both send a notice, and neither
// waits.
void rewrite(FdRef file, const std::string &name, const std::string &marks)
{
    if (lseek(file.get(), 0, SEEK_SET) != 0 || ftruncate(file.get(), 0) != 0) throw_errno("emptying " + name);
    write_whole(file, marks, name);
}

// Nothing where `is_told` says that the notices were told before. A disk that is full costs its user a sentence once more, and no start.
std::vector<std::string> unless_told(const std::function<bool()> &is_told, std::vector<std::string> notices, bool always) noexcept
{
    try {
        if (is_told() && !always) notices.clear();
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): as above
    }
    return notices;
}

constexpr const char *stamp_name = "version"; // in meta
constexpr std::size_t stamp_limit = 256;

std::optional<std::string> stamp_text(const StateDirectory &state)
{
    if (defence_is_on("root-stamp")) return read_meta_file(state, stamp_name, stamp_limit);
    const UniqueFd copy = find_beneath(state.home, std::string(".local/state/") + version_copy, O_RDONLY);
    return copy ? std::optional(read_whole(copy, stamp_limit, version_copy)) : std::nullopt;
}

} // namespace

UniqueFd ensure_state_directory(FdRef parent, const char *name, mode_t mode, uid_t uid, gid_t gid, const std::string &path)
{
    const bool made = mkdirat(parent.get(), name, 0700) == 0;
    if (!made && errno != EEXIST) throw_errno("creating " + path);
    UniqueFd directory = open_or_throw("opening " + path, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat facts = examine(directory, "examining " + path);
    if (made || is_half_made(directory, facts)) {
        if (fchown(directory.get(), uid, gid) != 0 || fchmod(directory.get(), mode) != 0) throw_errno("setting owner and mode of " + path);
        facts = examine(directory, "examining " + path);
    }
    if (facts.st_uid != uid || facts.st_gid != gid)
        throw Failure(
            FailureKind::agent_home,
            path + " belongs to " + std::to_string(facts.st_uid) + ":" + std::to_string(facts.st_gid) + " but must belong to " +
                std::to_string(uid) + ":" + std::to_string(gid) +
                "; ask the administrator whether the agent's account changed, and to move the directory away or to correct its owner");
    if ((facts.st_mode & 07777) != mode && fchmod(directory.get(), mode) != 0) throw_errno("setting the mode of " + path);
    return directory;
}

StateDirectory open_state_directory(const AsRoot & /*root*/, const std::string &state_dir, const std::string &user, const Account &agent,
                                    const std::function<void()> &wait)
{
    const UniqueFd top = if_there([&] { return open_trusted(state_dir, O_RDONLY | O_DIRECTORY, "state directory"); });
    if (top) require_own_file_system(top, state_dir, "agent.state_dir");
    require_in_use(top, state_dir);
    const UniqueFd users = ensure_own_directory(top, "users", 0711, 0, 0, state_dir + "/users");
    const std::string user_path = state_dir + "/users/" + user;
    const UniqueFd own = ensure_own_directory(users, user.c_str(), 0711, 0, 0, user_path);
    StateDirectory state;
    state.meta = ensure_own_directory(own, "meta", 0700, 0, 0, user_path + "/meta");
    state.lock = take_lock(state.meta, user, wait);
    state.home_path = agents_home(state_dir, user);
    state.home = ensure_own_directory(own, "home", 0700, agent.uid.value(), agent.gid.value(), state.home_path);
    state.staging = ensure_own_directory(own, "staging", 0700, agent.uid.value(), agent.gid.value(), user_path + "/staging");
    fault_point("state-locked");
    return state;
}

UniqueFd open_meta_file(const StateDirectory &state, const char *name, int flags)
{
    UniqueFd file = open_at(state.meta, name, flags | O_NOFOLLOW, 0600);
    const bool is_absent = (flags & O_CREAT) == 0 && errno == ENOENT;
    if (!file && !is_absent) throw_errno(std::string("opening meta/") + name + " of " + state.home_path);
    return file;
}

std::optional<std::string> read_meta_file(const StateDirectory &state, const char *name, std::size_t limit)
{
    const UniqueFd file = open_meta_file(state, name, O_RDONLY);
    return file ? std::optional(read_whole(file, limit, std::string("meta/") + name + " of " + state.home_path)) : std::nullopt;
}

void write_meta_file(const StateDirectory &state, const char *name, const std::string &content)
{
    const std::string fresh = std::string(name) + ".new";
    const UniqueFd file = open_meta_file(state, fresh.c_str());
    if (ftruncate(file.get(), 0) != 0) throw_errno("emptying meta/" + fresh);
    write_whole(file, content, "meta/" + fresh);
    if (fdatasync(file.get()) != 0) throw_errno("writing meta/" + fresh + " to disk");
    replace_meta_file(state, fresh.c_str(), name);
}

void replace_meta_file(const StateDirectory &state, const char *fresh, const char *name)
{
    if (renameat(state.meta.get(), fresh, state.meta.get(), name) != 0) throw_errno(std::string("replacing meta/") + name);
}

bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting)
{
    while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) throw_errno("locking " + what);
        if (Clock::now() >= deadline) return false;
        if (waiting) waiting();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

std::string network_file_system(unsigned long type)
{
    static const std::map<unsigned long, const char *> names = {
#include "runner/network_file_systems.inc"
    };
    const auto found = names.find(type);
    return found == names.end() ? "" : found->second;
}

void require_own_file_system(FdRef directory, const std::string &path, const std::string &key)
{
    struct statfs facts {};
    if (fstatfs(directory.get(), &facts) != 0) throw_errno("examining the file system of " + path);
    const std::string name = network_file_system(static_cast<unsigned long>(facts.f_type));
    if (name.empty() || !defence_is_on("state-on-this-host")) return;
    throw Failure(FailureKind::agent_home, path + " (" + key + ") lies on another host (" + name +
                                               "), so its locks and owners are not reliable; ask the administrator to mount a local file "
                                               "system there. Projects may lie on such a file system (docs/cookbook/fleet.md)");
}

// --- Messages to the wrapper, and notices that are sent only once.

void ToWrapper::tell(const RunnerMessage &message) noexcept
{
    const int patience = !defence_is_on("wrapper-deadline") ? 600 : reads_ ? wrapper_patience_seconds : 0;
    reads_ = send(wrapper_, message, in_seconds(patience));
}

void ToWrapper::tell_all(const std::vector<std::string> &notices) noexcept
{
    for (const auto &text : notices)
        tell(Notice{text});
}

bool ToWrapper::tell_at_once(const RunnerMessage &message) noexcept
{
    return send(wrapper_, message, Clock::now());
}

std::vector<std::string> untold(const StateDirectory &state, const char *about, const std::vector<std::string> &notices, bool always)
{
    const auto is_told = [&] {
        // A user who never had a notice has no such file.
        const UniqueFd file = open_meta_file(state, about, O_RDWR | (notices.empty() ? 0 : O_CREAT));
        const std::string mark = mark_of(notices);
        if (!file || read_whole(file, marks_limit, about) == mark) return bool(file);
        rewrite(file, about, mark);
        return false;
    };
    return unless_told(is_told, notices, always);
}

std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always)
{
    if (notices.empty()) return notices;
    const auto is_told = [&] {
        const UniqueFd file = open_meta_file(state, about);
        std::vector<std::string> named = notices;
        named.push_back(place);
        const std::string mark = mark_of(named) + '\n';
        std::string marks = read_whole(file, marks_limit, about);
        if (const std::size_t found = marks.find(mark); found != std::string::npos && (found == 0 || marks[found - 1] == '\n')) return true;
        marks += mark;
        while (marks.size() > marks_limit)
            marks.erase(0, marks.find('\n') + 1); // the oldest place
        rewrite(file, about, marks);
        return false;
    };
    return unless_told(is_told, notices, always);
}

// --- Which version used a home last.

std::optional<Version> read_stamp(const StateDirectory &state)
{
    std::optional<std::string> text = stamp_text(state);
    if (!text) return std::nullopt;
    if (!text->empty() && text->back() == '\n') text->pop_back();
    if (const auto version = parse_version(*text)) return version;
    const std::string path = split_last(state.home_path).first + "/meta/" + stamp_name;
    throw Failure(FailureKind::agent_home, path + " must hold the version of pi-agent that last used the agent's home, but it holds \"" +
                                               escape_for_display(*text) +
                                               "\"; ask the administrator to write that version into it (e.g. 0.1.0), or to remove it: "
                                               "then the home counts as new and no migration hook runs");
}

void write_stamp(const StateDirectory &state, const Version &version)
{
    write_meta_file(state, stamp_name, to_string(version) + "\n");
}

} // namespace pi_agent

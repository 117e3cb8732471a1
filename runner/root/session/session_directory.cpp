// Makes and removes the mount points of a session, lists the sessions that there are, and says what changed or drained the host.
#include "runner/root/session/session_directory.hpp"

#include "common/base/build_settings.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/mount/mounts.hpp"

#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <fstream>

namespace pi_agent {

namespace {

constexpr const char *parent_directory = "/run/pi-agent";
constexpr int directory_patience_seconds = 10;

// The holder of a lock of all starts may have been stopped by its user, or wait for something that does not come.
[[noreturn]] void refuse_to_wait(const std::string &what)
{
    throw Failure(FailureKind::busy, "another start has been " + what + " for more than " + std::to_string(directory_patience_seconds) +
                                         " seconds; try again (pgrep -a pi-agent shows it)");
}

bool is_tmpfs_of_its_own(FdRef sessions)
{
    struct statx own {};
    struct statx above {};
    if (statx(sessions.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &own) != 0 || statx(sessions.get(), "..", 0, STATX_MNT_ID, &above) != 0)
        throw_errno("examining the directory of sessions");
    struct statfs facts {};
    if (fstatfs(sessions.get(), &facts) != 0) throw_errno("examining the directory of sessions");
    return own.stx_mnt_id != above.stx_mnt_id && facts.f_type == TMPFS_MAGIC;
}

// The first session after boot mounts the tmpfs that all share. The lock belongs to root and is held only for this.
void mount_sessions(const AsRoot &root)
{
    const UniqueFd parent = open_runtime_directory();
    if (mkdirat(parent.get(), "sessions", 0700) != 0 && errno != EEXIST) throw_errno(std::string("creating ") + sessions_directory);
    if (is_tmpfs_of_its_own(open_sessions())) return;
    if (!lock_until(parent, in_seconds(directory_patience_seconds), parent_directory)) refuse_to_wait("mounting the directory of sessions");
    const UniqueFd sessions = open_sessions();
    if (is_tmpfs_of_its_own(sessions)) return; // another start was faster
    const DetachedMount tmpfs = new_filesystem(
        root, "tmpfs", {{"source", "pi-agent-sessions"}, {"mode", "0700"}, {"size", "256m"}, {"nr_inodes", "200000"}}, false);
    attach(root, tmpfs, sessions);
    make_shared(root, sessions_directory);
}

// The directory that was just made, locked; none where it is gone. Another start's sweep may hold it for the moment that it needs to look
// at it, or to remove it.
UniqueFd lock_if_kept(FdRef sessions, const std::string &id)
{
    UniqueFd directory = try_open_session(sessions, id);
    if (!directory) return directory;
    if (!lock_until(directory, in_seconds(directory_patience_seconds), "the session directory"))
        refuse_to_wait("looking at this one's directory");
    if (examine(directory, "examining the session directory").st_nlink == 0) directory.reset();
    return directory;
}

// Never through a symlink, nor into a mount there: openat2 refuses to cross. None when it cannot be opened (errno).
UniqueFd try_enter(FdRef directory, const std::string &name)
{
    open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_openat2, directory.get(), name.c_str(), &how, sizeof how)));
}

// Removes `name` and what is beneath it: directories, symlinks, and small files that serve as mount points. It never leaves this tmpfs, so
// a project that could not be unmounted is out of reach. Missing is fine: the unit's own cleanup may be at work too.
void remove_directory(FdRef directory, const std::string &name)
{
    const UniqueFd child = try_enter(directory, name);
    if (!child && errno == ENOENT) return;
    if (!child && errno != ENOTDIR && errno != ELOOP) throw_errno("removing a session's mount points");
    if (child)
        for (const auto &inner : names_in(child))
            remove_directory(child, inner);
    if (unlinkat(directory.get(), name.c_str(), child ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
        throw_errno("removing a session's mount points");
}

// Only mounts directly on our own mount points, whose paths nobody else can change. Mounts below one of them are on paths that a user or
// the agent chooses: they go with it (MNT_DETACH), and no such path is ever resolved here.
void unmount_all(const AsRoot &root, const std::string &path)
{
    constexpr int rounds = 8; // one point can have several mounts
    for (int round = 0; round < rounds; ++round) {
        const std::vector<std::string> points = topmost_mounts_below(list_mounts(), path);
        if (points.empty()) return;
        for (const auto &point : points)
            detach_at(root, path + "/" + point);
    }
}

constexpr const char *change_name = "changed"; // in /run/pi-agent

template <typename Number>
std::optional<Number> read_number(FdRef session, const char *name)
{
    const auto number = to_number<Number>(read_session_link(session, name));
    return number && *number > 0 ? number : std::nullopt;
}

// False as well where it is gone.
bool has_in_status(pid_t process, const std::string &wanted)
{
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    if (!status) require_gone("looking at a session's runner", ESRCH);
    bool found = false;
    for (std::string line; std::getline(status, line);)
        found = found || line == wanted;
    return found;
}

// A user can choose the name of a program and of a process, but not root's ids.
bool has_roots_ids(pid_t process)
{
    return has_in_status(process, "Uid:\t0\t0\t0\t0");
}

// Root of a container without CAP_SYS_PTRACE may not see the program of a process that is not dumpable, but may see its name and ids.
bool is_named_as_runner(pid_t process)
{
    constexpr std::size_t longest = 15; // TASK_COMM_LEN, without its NUL
    return has_in_status(process, "Name:\t" + split_last(build::runner_path).second.substr(0, longest)) && has_roots_ids(process);
}

// Whether somebody holds the session's lock: its runner holds it for as long as it lives. Another start that looks takes a shared lock.
bool is_held(FdRef session)
{
    if (flock(session.get(), LOCK_SH | LOCK_NB) == 0) return false;
    if (errno != EWOULDBLOCK && defence_is_on("only-enoent")) throw_errno("looking for the lock of a session");
    return true;
}

using Visit = std::function<void(const std::string &id, FdRef session)>;

// Visits sessions of all users: those whose runners live, or those whose runners do not.
void for_each_session(bool lives, const Visit &visit)
{
    const UniqueFd sessions = open_sessions();
    for (const auto &name : names_in(sessions)) {
        const UniqueFd session = is_session_id(name) ? try_open_session(sessions, name) : UniqueFd();
        if (session && is_held(session) == lives) visit(name, session);
    }
}

void for_each_live(Uid user, const Visit &visit)
{
    for_each_session(true, [&, wanted = std::to_string(user.value())](const std::string &id, FdRef session) {
        if (read_session_link(session, user_link) == wanted) visit(id, session);
    });
}

// The file that keeps sessions from starting, and the locks by which root's own tries of the sandbox still start.
constexpr const char *probes_name = "probes"; // never written; each try locks the byte of its user
constexpr std::size_t drain_limit = 4096;

UniqueFd open_probes()
{
    return open_or_throw("opening the file of tries", open_runtime_directory(), probes_name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

// In one step, root 0600.
void replace_runtime_file(const std::string &name, const std::string &content, const std::string &action)
{
    const UniqueFd directory = open_runtime_directory();
    const std::string fresh = name + ".new";
    write_whole(open_or_throw(action, directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600), content, fresh);
    if (renameat(directory.get(), fresh.c_str(), directory.get(), name.c_str()) != 0) throw_errno(action);
}

struct flock byte_of(Uid user, short type)
{
    static_assert(sizeof(off_t) == 8, "each user's byte is their own");
    struct flock byte {};
    byte.l_type = type;
    byte.l_whence = SEEK_SET;
    byte.l_start = static_cast<off_t>(user.value());
    byte.l_len = 1;
    return byte;
}

} // namespace

std::string make_session_id()
{
    return !defence_is_on("unique-session-id") ? std::string(32, 'a') : random_hex(16);
}

UniqueFd open_sessions()
{
    return open_trusted(sessions_directory, O_RDONLY | O_DIRECTORY, "directory of sessions");
}

UniqueFd try_open_session(FdRef sessions, const std::string &id)
{
    return open_if_there("opening the session directory", sessions, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

UniqueFd open_runtime_directory()
{
    const UniqueFd run = open_trusted("/run", O_RDONLY | O_DIRECTORY, "directory");
    if (mkdirat(run.get(), "pi-agent", 0700) != 0 && errno != EEXIST) throw_errno(std::string("creating ") + parent_directory);
    UniqueFd directory = open_trusted(parent_directory, O_RDONLY | O_DIRECTORY, "directory");
    if (fchmod(directory.get(), 0700) != 0) throw_errno(std::string("setting the mode of ") + parent_directory);
    return directory;
}

SessionDirectory SessionDirectory::create(const AsRoot &root, const std::string &id, Uid user)
{
    mount_sessions(root);
    const UniqueFd sessions = open_sessions();
    SessionDirectory session;
    session.path_ = std::string(sessions_directory) + "/" + id;
    constexpr int rounds = 10; // until it is locked, another start's sweep may take it for a session that is over
    for (int round = 0; !session.fd_ && round < rounds; ++round) {
        if (mkdirat(sessions.get(), id.c_str(), 0700) != 0) throw_errno("creating the session directory");
        fault_point("half-made");
        session.fd_ = lock_if_kept(sessions, id);
    }
    if (!session.fd_)
        throw Failure(FailureKind::changed_meanwhile, "other starts repeatedly took the new session for an ended one; try again");
    session.make_link(user_link, std::to_string(user.value()));
    session.make_link(runner_link, std::to_string(getpid()));
    fault_point("directory-made");
    return session;
}

UniqueFd SessionDirectory::make_directory(const std::string &relative) const
{
    UniqueFd made = try_enter(fd_, relative.empty() ? "." : relative); // most of a path already exists
    if (made) return made;
    if (errno != ENOENT) throw_errno("opening a mount point");
    const auto [above, name] = split_last(relative);
    const UniqueFd parent = make_directory(above);
    if (mkdirat(parent.get(), name.c_str(), 0755) == 0) {
        if (fchmodat(parent.get(), name.c_str(), 0755, 0) != 0) throw_errno("setting the mode of a mount point");
    } else if (errno != EEXIST) {
        throw_errno("creating a mount point");
    }
    made = try_enter(parent, name); // we make nothing on the host
    if (!made) throw_errno("opening a mount point");
    return made;
}

UniqueFd SessionDirectory::make_file(const std::string &name) const
{
    UniqueFd file = open_or_throw("creating a file in the session directory", fd_, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
    if (fchmod(file.get(), 0444) != 0) throw_errno("setting the mode of a file in the session directory");
    return file;
}

UniqueFd SessionDirectory::make_late_file(const std::string &name) const
{
    return has(name) ? open_or_throw("opening a file in the session directory", fd_, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW)
                     : make_file(name);
}

bool SessionDirectory::has(const std::string &name) const
{
    return has_name(fd_, name, "looking for " + name + " in the session directory");
}

void SessionDirectory::make_link(const std::string &relative, const std::string &target) const
{
    const auto [directory, name] = split_last(relative);
    const UniqueFd parent = make_directory(directory);
    if (symlinkat(target.c_str(), parent.get(), name.c_str()) != 0) throw_errno("creating a link in the session directory");
}

void SessionDirectory::unlock() const
{
    if (flock(fd_.get(), LOCK_UN) != 0) throw_errno("unlocking the session directory");
}

std::string read_session_link(FdRef session, const char *name)
{
    std::string text = read_link(session, name);
    if (text.empty()) require_gone(std::string("reading the link ") + name + " in the session directory");
    return text;
}

bool session_exists(const AsRoot & /*root*/, const std::string &id)
{
    return if_there([&] { return has_name(open_sessions(), id, "looking for the session " + id); }); // otherwise no session since boot
}

void remove_session(const AsRoot &root, const std::string &id, const RemoveRest &rest, Leave leave)
{
    if (!is_session_id(id)) throw Failure(ExitStatus::usage, "not a session id");
    const UniqueFd sessions = open_sessions();
    {
        const UniqueFd session = try_open_session(sessions, id);
        if (!session) return;
        fault_point("removing");
        unmount_all(root, std::string(sessions_directory) + "/" + id);
        fault_point("unmounted");
        for (const char *name : {"root", "run"}) // copies of files are there, and the next step can take its time
            remove_directory(session, name);
        if ((rest && !rest(session)) || leave == Leave::directory) return;
        for (const auto &name : names_in(session))
            remove_directory(session, name);
    }
    if (unlinkat(sessions.get(), id.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) throw_errno("removing the session directory");
}

std::optional<Uid> session_user(FdRef session)
{
    const auto number = read_number<uid_t>(session, user_link);
    return number ? std::optional(Uid(*number)) : std::nullopt;
}

std::optional<pid_t> session_runner(FdRef session)
{
    return read_number<pid_t>(session, runner_link);
}

bool is_runner(pid_t process)
{
    constexpr std::string_view replaced = " (deleted)"; // by an upgrade
    const std::string path = read_link(FdRef(AT_FDCWD), "/proc/" + std::to_string(process) + "/exe");
    if (path.empty() && errno == EACCES) return is_named_as_runner(process);
    if (path.empty()) require_gone("looking at a session's runner", ESRCH);
    std::string name = split_last(path).second;
    if (name.ends_with(replaced)) name.resize(name.size() - replaced.size());
    return name == split_last(build::runner_path).second && (has_roots_ids(process) || !defence_is_on("runner-ids"));
}

bool has_living_runner(const std::string &session_id)
{
    const UniqueFd session = try_open_session(open_sessions(), session_id);
    const auto runner = session ? session_runner(session) : std::nullopt;
    return runner && is_runner(*runner);
}

std::size_t count_sessions(const AsRoot & /*root*/, Uid user)
{
    std::size_t count = 0;
    for_each_live(user, [&](const std::string & /*id*/, FdRef /*session*/) { ++count; });
    return count;
}

bool has_session_without(const AsRoot & /*root*/, const char *name, Uid user, const std::string &id)
{
    const auto has = [](FdRef session, const char *one) {
        return has_name(session, one, std::string("looking for ") + one + " of a session");
    };
    bool found = false;
    for_each_live(user, [&](const std::string &other, FdRef session) {
        found = found || (other != id && has(session, "home") && !has(session, name)); // one without a home only waits
    });
    return found;
}

std::vector<std::string> find_orphans(const AsRoot & /*root*/)
{
    std::vector<std::string> orphans;
    for_each_session(false, [&](const std::string &id, FdRef /*session*/) { orphans.push_back(id); });
    return orphans;
}

std::vector<LiveSession> live_sessions(const AsRoot & /*root*/)
{
    return if_there([&] { // otherwise no session since boot
        std::vector<LiveSession> found;
        for_each_session(true, [&](const std::string &id, FdRef session) {
            // A session that has not recorded its user yet will compare the policy after it does (require_same_conditions).
            if (const auto user = session_user(session))
                found.push_back({id, *user});
            else if (!defence_is_on("half-made-sessions"))
                throw Failure(ExitStatus::internal, "a session without a user");
        });
        return found;
    });
}

std::string host_stamp()
{
    struct stat facts {};
    if (fstatat(open_runtime_directory().get(), change_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        require_gone("looking whether this host was changed");
        return "";
    }
    return std::to_string(facts.st_ino) + ":" + std::to_string(facts.st_ctim.tv_sec) + "." + std::to_string(facts.st_ctim.tv_nsec);
}

void mark_host_changed(const AsRoot & /*root*/)
{
    replace_runtime_file(change_name, "", "telling starts that are under way that this host is changed");
}

std::optional<Drain> find_drain(const AsRoot & /*root*/)
{
    const std::string what = "looking whether this host is drained";
    const UniqueFd file = open_if_there(what, open_runtime_directory(), drain_name, O_RDONLY | O_NOFOLLOW);
    if (!file) return std::nullopt;
    const auto changed = examine(file, what).st_mtim;
    const auto since_usec = static_cast<std::uint64_t>(changed.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(changed.tv_nsec) / 1000;
    return Drain{read_whole(file, drain_limit, drain_name), since_usec};
}

void begin_drain(const AsRoot & /*root*/, const std::string &message)
{
    replace_runtime_file(drain_name, message, "draining this host");
}

bool end_drain(const AsRoot & /*root*/)
{
    const UniqueFd directory = open_runtime_directory();
    const bool was = unlinkat(directory.get(), drain_name, 0) == 0;
    if (!was) require_gone("ending the drain of this host");
    return was;
}

UniqueFd let_canary_start(const AsRoot & /*root*/, Uid user)
{
    UniqueFd probes = open_probes();
    struct flock byte = byte_of(user, F_RDLCK); // shared: several may try as one user
    if (fcntl(probes.get(), F_OFD_SETLK, &byte) != 0) throw_errno("telling starts of a try of the sandbox");
    return probes;
}

bool may_canary_start(const AsRoot & /*root*/, Uid user)
{
    struct flock byte = byte_of(user, F_WRLCK);
    if (fcntl(open_probes().get(), F_OFD_GETLK, &byte) != 0) throw_errno("looking for a try of the sandbox");
    return byte.l_type != F_UNLCK;
}

} // namespace pi_agent

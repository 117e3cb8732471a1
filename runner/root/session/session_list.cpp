// Looks at the directories of sessions, and at what changed the host.
#include "runner/root/session/session_directory.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

constexpr const char *change_name = "changed"; // in /run/pi-agent
constexpr const char *fresh_name = "changed.new";

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

bool has(FdRef session, const char *name)
{
    return has_name(session, name, std::string("looking for ") + name + " of a session");
}

} // namespace

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

bool has_unlocked_session(const AsRoot & /*root*/, Uid user, const std::string &id)
{
    bool found = false;
    for_each_live(user, [&](const std::string &other, FdRef session) {
        found = found || (other != id && has(session, "home") && !has(session, "settings.json"));
    });
    return found;
}

bool has_unheld_session(const AsRoot & /*root*/, Uid user, const std::string &id)
{
    bool found = false;
    for_each_live(user, [&](const std::string &other, FdRef session) {
        found =
            found || (other != id && has(session, "home") && !has(session, held_link)); // one without a home only waits: it will be held
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
    const std::string action = "telling starts that are under way that this host is changed";
    const UniqueFd directory = open_runtime_directory();
    const UniqueFd fresh = open_or_throw(action, directory, fresh_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (renameat(directory.get(), fresh_name, directory.get(), change_name) != 0) throw_errno(action);
}

} // namespace pi_agent

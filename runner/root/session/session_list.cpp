// Looking at the directories of sessions. A live runner holds the lock of its session's.
#include "runner/root/session/session_list.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <string_view>
#include <sys/file.h>
#include <unistd.h>

namespace pi_agent {

namespace {

template <typename Number>
std::optional<Number> read_number(FdRef session, const char *name)
{
    const auto number = to_number<Number>(read_session_link(session, name));
    return number && *number > 0 ? number : std::nullopt;
}

// Root of a container without CAP_SYS_PTRACE may not look at the program of a process that is not dumpable, but at its name and ids. A name
// can be chosen, root's ids cannot.
bool is_named_as_runner(pid_t process)
{
    constexpr std::size_t longest = 15; // TASK_COMM_LEN, without its NUL
    const std::string name = split_last(build::runner_path).second.substr(0, longest);
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    if (!status) require_gone("looking at a session's runner", ESRCH);
    bool has_name = false;
    bool is_roots = false;
    for (std::string line; std::getline(status, line);) {
        has_name = has_name || line == "Name:\t" + name;
        is_roots = is_roots || line == "Uid:\t0\t0\t0\t0";
    }
    return has_name && is_roots;
}

// Whether somebody holds the session's lock: its runner, who has it for as long as it lives. Another start that looks takes a shared one.
bool is_held(FdRef session)
{
    if (flock(session.get(), LOCK_SH | LOCK_NB) == 0) return false;
    if (errno != EWOULDBLOCK && defence_is_on("only-enoent")) throw_errno("looking for the lock of a session");
    return true;
}

// Of all users, those whose runners live.
void for_each_live(FdRef sessions, const std::function<void(const std::string &id, FdRef session)> &visit)
{
    for (const auto &name : names_in(sessions)) {
        const UniqueFd session = is_session_id(name) ? try_open_session(sessions, name) : UniqueFd();
        if (session && is_held(session)) visit(name, session);
    }
}

void for_each_session(Uid user, const std::function<void(const std::string &id, FdRef session)> &visit)
{
    const std::string wanted = std::to_string(user.value());
    for_each_live(open_sessions(), [&](const std::string &id, FdRef session) {
        if (read_session_link(session, user_link) == wanted) visit(id, session);
    });
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
    return name == split_last(build::runner_path).second;
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
    for_each_session(user, [&](const std::string & /*id*/, FdRef /*session*/) { ++count; });
    return count;
}

bool has_unlocked_session(const AsRoot & /*root*/, Uid user, const std::string &id)
{
    bool found = false;
    for_each_session(user, [&](const std::string &other, FdRef session) {
        const auto has = [&](const char *name) { return has_name(session, name, std::string("looking for ") + name + " of a session"); };
        found = found || (other != id && has("home") && !has("settings.json"));
    });
    return found;
}

std::vector<std::string> find_orphans(const AsRoot & /*root*/)
{
    std::vector<std::string> orphans;
    const UniqueFd sessions = open_sessions();
    for (const auto &name : names_in(sessions)) {
        if (!is_session_id(name)) continue;
        const UniqueFd session = try_open_session(sessions, name);
        if (session && !is_held(session)) orphans.push_back(name);
    }
    return orphans;
}

std::vector<LiveSession> live_sessions(const AsRoot & /*root*/)
{
    std::vector<LiveSession> found;
    try {
        for_each_live(open_sessions(), [&](const std::string &id, FdRef session) {
            // One that has not come to writing this down will compare the policy after it (require_same_conditions).
            if (const auto user = session_user(session))
                found.push_back({id, *user});
            else if (!defence_is_on("half-made-sessions"))
                throw Failure(ExitStatus::internal, "a session without a user");
        });
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != ENOENT) throw; // no session since boot
    }
    return found;
}

} // namespace pi_agent

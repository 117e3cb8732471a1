// Signals to runners, by descriptor: a number could be another process by now.
#include "runner/root/confined/asked_end.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/unit_properties.hpp"
#include "runner/root/confined/scratch_removal.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/wire/answer.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr const char *reason_link = "asked-end"; // leads nowhere: its text is the reason

// The runner itself, none when it is gone. It holds the session's lock for as long as it lives, so a runner that has its number while
// somebody holds the lock is this one; who removes what a dead one left holds it as well.
UniqueFd open_runner(FdRef session)
{
    const auto number = session_runner(session);
    if (!number) return {}; // being made, or removed
    UniqueFd runner = open_process(*number);
    if (!runner && errno != ESRCH) throw_errno("looking at a session's runner");
    if (runner && (!is_runner(*number) || flock(session.get(), LOCK_SH | LOCK_NB) == 0)) return {};
    return runner;
}

// One session's trouble keeps no other alive: whoever does not hear of it is among those that are left.
void send_signal(FdRef sessions, const EndOrder &order, int number) noexcept
{
    try {
        const UniqueFd session = try_open_session(sessions, order.session);
        if (!session) return; // over
        const UniqueFd runner = open_runner(session);
        if (!runner) return;
        // best_effort: without it the session ends all the same, and its user is not told why.
        static_cast<void>(symlinkat(order.reason.c_str(), session.get(), reason_link) == 0);
        signal_process(runner, number, "ending a session");
    } catch (const std::exception &failure) {
        record_problem(order.session, failure.what());
    }
}

// What the session confines: its runner may be beyond even a kill (it waits for a file system whose program does not answer), and systemd
// beyond an answer.
void end_confined(FdRef session, const std::string &id, Deadline deadline)
{
    const auto user = session_user(session);
    std::vector<ControlGroup> groups;
    if (user)
        if (auto group = group_of_unit(read_systemd_tops(), place_in_slice(*user, service_name(id)))) groups.push_back(std::move(*group));
    if (auto group = find_own_group(id)) groups.push_back(std::move(*group));
    for (const auto &group : groups)
        kill_group(group);
    for (const auto &group : groups)
        empty_group(group, deadline);
}

// What its cleanup would do, and the next sweep: the two may be at it as well.
void finish_end(const AsRoot &root, FdRef sessions, const EndOrder &order, Deadline deadline) noexcept
{
    try {
        const UniqueFd session = try_open_session(sessions, order.session);
        if (!session || !defence_is_on("end-without-runner")) return;
        end_confined(session, order.session, deadline);
        if (flock(session.get(), LOCK_EX | LOCK_NB) != 0) return; // its runner is not gone yet
        if (record_end_of_killed(root, order.session, deadline)) remove_session_with_scratch(root, order.session, 1);
    } catch (const std::exception &failure) {
        record_problem(order.session, failure.what());
    }
}

// Nothing of it runs, and that is recorded. What it left may still be about to be removed.
bool is_over(FdRef sessions, const std::string &id) noexcept
{
    try {
        const UniqueFd session = try_open_session(sessions, id);
        return !session || (flock(session.get(), LOCK_SH | LOCK_NB) == 0 && !has_open_end(session));
    } catch (const std::exception &) { // it is looked at again, and counts as one that lives
        return false;
    }
}

bool is_removed(FdRef sessions, const std::string &id) noexcept
{
    try {
        return !try_open_session(sessions, id);
    } catch (const std::exception &) { // as above
        return false;
    }
}

using IsDone = bool (*)(FdRef sessions, const std::string &id);

// Those that are not done at the end.
std::vector<EndOrder> wait_until(IsDone is_done, FdRef sessions, std::vector<EndOrder> orders, int seconds)
{
    const Deadline deadline = in_seconds(seconds);
    for (;;) {
        std::erase_if(orders, [&](const EndOrder &order) { return is_done(sessions, order.session); });
        if (orders.empty() || Clock::now() >= deadline) return orders;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

} // namespace

std::vector<std::string> end_sessions(const AsRoot &root, const std::vector<EndOrder> &orders)
{
    require_host_namespaces(root); // in others, the numbers of processes mean something else
    const UniqueFd sessions = open_sessions();
    for (const auto &order : orders)
        send_signal(sessions, order, SIGTERM);
    const std::vector<EndOrder> deaf = wait_until(is_over, sessions, orders, asked_end_patience_seconds);
    for (const auto &order : deaf)
        send_signal(sessions, order, SIGKILL);
    const std::vector<EndOrder> left = wait_until(is_removed, sessions, orders, killed_end_patience_seconds);
    const Deadline deadline = in_seconds(forced_end_patience_seconds);
    for (const auto &order : left)
        finish_end(root, sessions, order, deadline);
    std::vector<std::string> names;
    for (const auto &order : wait_until(is_over, sessions, left, 0))
        names.push_back(order.session);
    return names;
}

void AskedEnd::explain() noexcept
{
    try {
        const std::string reason = explained_ ? "" : read_session_link(session_.fd(), reason_link);
        if (reason.empty()) return;
        explained_ = true;
        record_.because(reason);
        tell_("the session was ended: " + reason);
    } catch (const std::exception &failure) { // best_effort: it ends all the same
        record_problem("", failure.what());
    }
}

} // namespace pi_agent

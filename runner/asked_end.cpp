// Signals to runners, by descriptor: a number could be another process by now.
#include "runner/asked_end.hpp"

#include "common/channel.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/process_handle.hpp"
#include "runner/control_group.hpp"
#include "runner/own_group.hpp"
#include "runner/process_state.hpp"
#include "runner/session_list.hpp"
#include "runner/unit_properties.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *reason_link = "asked-end"; // leads nowhere: its text is the reason
constexpr int end_patience_seconds = 10;         // the runner's own: two seconds of grace, and the unit's stop
constexpr int kill_patience_seconds = 20;        // systemd's stop of the unit, and the cleanup

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

// What the session confines, where its runner cannot even be killed (it waits for a file system whose program does not answer).
void kill_confined(FdRef sessions, const EndOrder &order) noexcept
{
    try {
        const UniqueFd session = try_open_session(sessions, order.session);
        const auto user = session ? session_user(session) : std::nullopt;
        if (!user || !defence_is_on("end-without-runner")) return;
        std::ifstream init("/proc/1/cgroup");
        if (const auto group = group_of_unit(read_systemd_tops(init), place_in_slice(*user, service_name(order.session))))
            kill_group(*group);
        if (const auto group = find_own_group(order.session)) kill_group(*group);
    } catch (const std::exception &failure) {
        record_problem(order.session, failure.what());
    }
}

// Nothing of it runs, and that is recorded. What it left may still be about to be removed.
bool is_over(FdRef sessions, const std::string &id)
{
    const UniqueFd session = try_open_session(sessions, id);
    if (!session) return errno == ENOENT;
    return flock(session.get(), LOCK_SH | LOCK_NB) == 0 && !has_open_end(session);
}

// Those that are still there at the end.
std::vector<EndOrder> wait_for_ends(FdRef sessions, std::vector<EndOrder> orders, int seconds)
{
    const Deadline deadline = in_seconds(seconds);
    for (;;) {
        std::erase_if(orders, [&](const EndOrder &order) { return is_over(sessions, order.session); });
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
    std::vector<EndOrder> left = wait_for_ends(sessions, orders, end_patience_seconds);
    for (const auto &order : left)
        send_signal(sessions, order, SIGKILL);
    left = wait_for_ends(sessions, std::move(left), kill_patience_seconds);
    for (const auto &order : left)
        kill_confined(sessions, order);
    std::vector<std::string> names;
    for (const auto &order : left)
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

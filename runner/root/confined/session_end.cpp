// Ending sessions: as the runner, as who is asked to, and as who finds what one left. Signals to runners, by descriptor: a number could be
// another process by now.
#include "runner/root/confined/session_end.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/unit_properties.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/method/own_group.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int own_removal_seconds = 10;
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
    attempt_recorded(order.session, [&] {
        const UniqueFd session = try_open_session(sessions, order.session);
        if (!session) return; // over
        const UniqueFd runner = open_runner(session);
        if (!runner) return;
        // best_effort: without the reason the session still ends, and its user does not learn why.
        static_cast<void>(symlinkat(order.reason.c_str(), session.get(), reason_link) == 0);
        signal_process(runner, number, "ending a session");
    });
}

// What the session confines: its runner may be beyond even a kill (it waits for a file system whose program does not answer), and systemd
// beyond an answer.
void end_confined(FdRef session, const std::string &id, Deadline deadline)
{
    const auto user = session_user(session);
    const auto unit = user ? group_of_unit(read_systemd_tops(), place_in_slice(*user, service_name(id))) : std::nullopt;
    const auto own = find_own_group(id);
    for (const auto *group : {&unit, &own})
        if (*group) kill_group(**group);
    for (const auto *group : {&unit, &own})
        if (*group) empty_group(**group, deadline);
}

// What its cleanup would do, and the next sweep: the two may be at it as well.
void finish_end(const AsRoot &root, FdRef sessions, const EndOrder &order, Deadline deadline) noexcept
{
    attempt_recorded(order.session, [&] {
        const UniqueFd session = try_open_session(sessions, order.session);
        if (!session || !defence_is_on("end-without-runner")) return;
        end_confined(session, order.session, deadline);
        if (flock(session.get(), LOCK_EX | LOCK_NB) != 0) return; // its runner is not gone yet
        if (record_end_of_killed(root, order.session, deadline)) remove_session_with_scratch(root, order.session, 1);
    });
}

// No process of the session runs, and its end is recorded. What it left may still await removal.
bool is_over(const UniqueFd &session)
{
    return !session || (flock(session.get(), LOCK_SH | LOCK_NB) == 0 && !has_open_end(session));
}

bool is_removed(const UniqueFd &session)
{
    return !session;
}

// Those that are not done at the end. One that cannot be looked at is looked at again, and counts as one that lives.
std::vector<EndOrder> wait_until(bool (*is_done)(const UniqueFd &), FdRef sessions, std::vector<EndOrder> orders, int seconds)
{
    const auto look = [&](const EndOrder &order) {
        try {
            return is_done(try_open_session(sessions, order.session));
        } catch (const std::exception &) {
            return false;
        }
    };
    const Deadline deadline = in_seconds(seconds);
    for (;;) {
        std::erase_if(orders, look);
        if (orders.empty() || Clock::now() >= deadline) return orders;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

// What a sandbox says that has ended by itself, with no agent in it; "" where it has not. A session whose unit ends is cleaned up at once,
// so whatever else fails then may have come of that.
std::string words_of_early_end(Sandbox &sandbox) noexcept
{
    const Deadline deadline = Clock::now() + std::chrono::milliseconds(200); // for a signal that is on its way
    try {
        for (;;) {
            sandbox.process();
            const SandboxResult result = sandbox.result();
            if (result.ended) return "the agent was not started: " + sandbox.explain(result) + sandbox.where_to_look();
            if (Clock::now() >= deadline) return "";
            wait_for_input(sandbox.fd(), sandbox.next_look(deadline));
        }
    } catch (const std::exception &) { // then what failed is told
        return "";
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

void Ending::explain() noexcept
{
    attempt_recorded("", [&] { // best_effort: the session still ends
        const std::string reason = explained_ ? "" : read_session_link(session_.fd(), reason_link);
        if (reason.empty()) return;
        explained_ = true;
        record_.because(reason);
        tell_("the session was ended: " + reason);
    });
}

AgentEnded Ending::run_recorded(const std::function<AgentEnded()> &run)
{
    AgentEnded ended{};
    try {
        ended = run();
    } catch (const Failure &failure) {
        explain();
        try {
            record_.failed(failure.status(), failure.what());
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): main tries again, and tells the user
        }
        throw;
    }
    explain();
    try {
        if (!record_.knows_usage()) record_.take_usage(sandbox_.usage());
        record_.ended(ended);
    } catch (const Failure &failure) { // the agent has ended whatever comes of this
        tell_(std::string("the end of this session is not recorded: ") + failure.what());
    }
    return ended;
}

void Ending::end_after(const std::exception_ptr &problem)
{
    const std::string early = words_of_early_end(sandbox_);
    attempt_recorded(id_, [&] {
        if (end_sandbox(sandbox_)) sandbox_has_ended();
    });
    if (early.empty()) return;
    try {
        std::rethrow_exception(problem); // a signal, as which pi ends, passes
    } catch (const std::exception &failure) {
        throw Failure(ExitStatus::unavailable, early + "; meanwhile: " + failure.what());
    }
}

Ending::~Ending()
{
    explain();
    // The unit is bound to this process' scope, and that lasts as long as anything in it, which need not be this process.
    if (sandbox_may_live_ && defence_is_on("end-kills")) attempt_recorded(id_, [&] { sandbox_.kill(); });
    attempt_recorded(id_, [&] {
        const UniqueFd session = try_open_session(open_sessions(), id_);
        if (session && has_open_end(session)) return; // nothing took that entry: the next sweep tries again
        if (!sandbox_may_live_ || !sandbox_.is_there()) remove_session_with_scratch(root_, id_, own_removal_seconds);
    });
}

void sweep(const AsRoot &root, Sandbox &sandbox)
{
    const Deadline deadline = in_seconds(1); // for other users' file systems, too, which need not answer
    for (const auto &orphan : find_orphans(root)) {
        bool is_known = false;
        try { // one user's leftover must not be another's refusal
            const UniqueFd session = try_open_session(open_sessions(), orphan);
            if (!session) continue;
            // Asked before it is locked: who holds that lock counts as a session, and this one may only be in the middle of its end.
            if (sandbox.may_live(orphan)) continue;
            // Held until it is removed: a start that has just made its directory waits for this lock, and then finds itself without one.
            if (flock(session.get(), LOCK_EX | LOCK_NB) != 0 && defence_is_on("sweep-lock")) {
                if (errno != EWOULDBLOCK) throw_errno("locking it");
                continue;
            }
            is_known = true;
            // What lies on disk has no session then, and ScratchSweep finds it.
            if (!record_end_of_killed(root, orphan, deadline))
                throw Failure(ExitStatus::limit, "somebody else records its end; the next sweep goes on");
            remove_session(root, orphan, [&](FdRef left) {
                PlaceholderRemoval(root, orphan, left).finish(deadline);
                return true;
            });
            record_problem(orphan, "a session directory without a session was removed");
        } catch (const Failure &failure) {
            if (!defence_is_on("sweep-goes-on")) throw;
            record_problem(orphan, std::string("a session directory without a session cannot be removed: ") + failure.what());
            if (!is_known) return; // who did not answer is not asked for the next ones, too
        }
    }
}

} // namespace pi_agent

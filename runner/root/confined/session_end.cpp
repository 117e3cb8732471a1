// Ends sessions: for the runner, for the administrator, and for whoever finds the remains of one. Sends signals to runners by descriptor: a
// number could belong to another process by now.
#include "runner/root/confined/session_end.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/method/own_group.hpp"

#include <csignal>
#include <sys/file.h>
#include <thread>

namespace pi_agent {

namespace {

constexpr int own_removal_seconds = 10;
constexpr const char *reason_link = "asked-end"; // leads nowhere: its text is the reason

// The session's runner; none when it is gone. It holds the session's lock for as long as it lives. So while the lock is held, a runner with
// this number is the right one; whoever removes what a dead one left holds the lock as well.
UniqueFd open_runner(FdRef session)
{
    const auto number = session_runner(session);
    if (!number) return {}; // the session is being made, or removed
    UniqueFd runner = open_process(*number);
    if (!runner && errno != ESRCH) throw_errno("looking at a session's runner");
    if (runner && (!is_runner(*number) || flock(session.get(), LOCK_SH | LOCK_NB) == 0)) return {};
    return runner;
}

// A failure here must not keep other sessions alive: one that gets no signal is among those that are left.
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

// Ends what the session confines. Its runner may not react even to a kill (it waits for a file system whose program does not answer), and
// systemd may not answer.
void end_confined(FdRef session, const std::string &id, Deadline deadline)
{
    const auto user = session_user(session);
    const auto unit = user ? group_of_unit(read_systemd_tops(), place_in_slice(*user, service_name(id))) : std::nullopt;
    const auto gate = user ? group_of_unit(read_systemd_tops(), place_in_slice(*user, gate_name(id))) : std::nullopt;
    const auto own = find_own_group(id);
    for (const auto *group : {&unit, &gate, &own})
        if (*group) kill_group(**group);
    for (const auto *group : {&unit, &gate, &own})
        if (*group) empty_group(**group, deadline);
}

// Does what the session's cleanup and the next sweep would do: both may be at it as well.
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

// The sessions that are not done at the end. One that cannot be looked at is looked at again, and counts as alive.
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

// What a sandbox reports that has ended by itself, with no agent in it; "" where it has not. A session whose unit ends is cleaned up at
// once, so any other failure at that time may come from it.
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
    } catch (const std::exception &) { // then the original failure is reported
        return "";
    }
}

} // namespace

Failure no_agent(Sandbox &sandbox, const SandboxResult &result, const std::string &problem, bool launched, bool stopped)
{
    const std::string why = problem.empty() ? sandbox.explain(result) : escape_for_display(problem);
    const bool asked = stopped && problem.empty();
    const std::string text = asked ? "the session was ended before the agent was started" : "the agent was not started: " + why;
    // pi-agent-exec ends with the status of its own failure.
    const bool known = result.code == CLD_EXITED && result.status >= static_cast<int>(ExitStatus::usage) &&
                       result.status <= static_cast<int>(ExitStatus::configuration);
    return Failure(launched && known ? static_cast<ExitStatus>(result.status) : ExitStatus::unavailable, text + sandbox.where_to_look());
}

bool end_sandbox(Sandbox &sandbox)
{
    sandbox.stop();
    const Deadline deadline = in_seconds(sandbox_stop_seconds);
    for (sandbox.process(); !sandbox.result().ended; sandbox.process()) {
        if (Clock::now() >= deadline) return false;
        wait_for_input(sandbox.fd(), sandbox.next_look(deadline));
    }
    return true;
}

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
            record_.failed(failure.status(), failure.what(), failure.kind());
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): main tries again, and tells the user
        }
        throw;
    }
    explain();
    try {
        if (!record_.knows_usage()) record_.take_usage(sandbox_.usage());
        record_.ended(ended);
    } catch (const Failure &failure) { // the agent has ended, whatever happens here
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
        std::rethrow_exception(problem); // EndedBySignal passes: pi ends by that signal
    } catch (const std::exception &failure) {
        throw Failure(ExitStatus::unavailable, early + "; meanwhile: " + failure.what());
    }
}

Ending::~Ending()
{
    explain();
    // The unit is bound to this process' scope. The scope lasts as long as any process in it, and that need not be this one.
    if (sandbox_may_live_ && defence_is_on("end-kills")) attempt_recorded(id_, [&] { sandbox_.kill(); });
    attempt_recorded(id_, [&] {
        const UniqueFd session = try_open_session(open_sessions(), id_);
        if (session && has_open_end(session)) return; // no record took that entry: the next sweep tries again
        if (!sandbox_may_live_ || !sandbox_.is_there()) remove_session_with_scratch(root_, id_, own_removal_seconds);
    });
}

void sweep(const AsRoot &root, Sandbox &sandbox)
{
    const Deadline deadline = in_seconds(1); // file systems of other users are involved, which need not answer
    for (const auto &orphan : find_orphans(root)) {
        bool is_known = false;
        try { // one user's leftover must not be another's refusal
            const UniqueFd session = try_open_session(open_sessions(), orphan);
            if (!session) continue;
            // Asks before locking: a holder of that lock counts as a session, and this one may only be in the middle of its end.
            if (sandbox.may_live(orphan)) continue;
            // Held until the session is removed: a start that has just made its directory waits for this lock, and then finds its directory
            // gone.
            if (flock(session.get(), LOCK_EX | LOCK_NB) != 0 && defence_is_on("sweep-lock")) {
                if (errno != EWOULDBLOCK) throw_errno("locking it");
                continue;
            }
            is_known = true;
            // Files on disk then have no session, and ScratchSweep finds them.
            if (!record_end_of_killed(root, orphan, deadline))
                throw Failure(ExitStatus::limit, "somebody else records its end; the next sweep goes on");
            remove_session(root, orphan, [&](FdRef left) {
                PlaceholderRemoval(root, orphan, left).finish(deadline);
                return true;
            });
            record_problem(orphan, "a session directory without a session was removed");
        } catch (const Failure &failure) {
            if (!defence_is_on("sweep-goes-on")) throw;
            record_problem(orphan, "a session directory without a session cannot be removed: ", failure.what());
            if (!is_known) return; // if it did not answer, it is not asked about the others either
        }
    }
}

} // namespace pi_agent

// Ends what a session left: its processes, its mounts, its directories.
#include "runner/root/confined/session_end.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/confined/placeholder_removal.hpp"
#include "runner/root/confined/scratch_removal.hpp"
#include "runner/root/confined/supervise.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/session_record.hpp"

#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <sys/file.h>

namespace pi_agent {

namespace {

constexpr int own_removal_seconds = 10;

// What a sandbox says that has ended by itself, with no agent in it; "" where it has not. A session whose unit ends is cleaned up at once,
// so whatever else fails then may have come of that.
std::string words_of_early_end(Sandbox &sandbox) noexcept
{
    constexpr auto patience = std::chrono::milliseconds(200); // for a signal that is on its way
    const Deadline deadline = Clock::now() + patience;
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

void SessionEnd::end_after(const std::exception_ptr &problem)
{
    const std::string early = words_of_early_end(sandbox_);
    try {
        if (end_sandbox(sandbox_)) sandbox_has_ended();
    } catch (const std::exception &failure) {
        record_problem(id_, failure.what());
    }
    if (early.empty()) return;
    try {
        std::rethrow_exception(problem); // a signal, as which pi ends, passes
    } catch (const std::exception &failure) {
        throw Failure(ExitStatus::unavailable, early + "; meanwhile: " + failure.what());
    }
}

SessionEnd::~SessionEnd()
{
    // The unit is bound to this process' scope, and that lasts as long as anything in it, which need not be this process.
    if (sandbox_may_live_ && defence_is_on("end-kills")) {
        try {
            sandbox_.kill();
        } catch (const std::exception &failure) {
            record_problem(id_, failure.what());
        }
    }
    try {
        const UniqueFd session = try_open_session(open_sessions(), id_);
        if (session && has_open_end(session)) return; // nothing took that entry: the next sweep tries again
        if (!sandbox_may_live_ || !sandbox_.is_there()) remove_session_with_scratch(root_, id_, own_removal_seconds);
    } catch (const std::exception &failure) {
        record_problem(id_, failure.what());
    }
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
                remove_placeholders(root, orphan, left, deadline);
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

AgentEnded run_recorded(SessionRecord &record, AskedEnd &asked, Sandbox &sandbox, const AskedEnd::Tell &tell,
                        const std::function<AgentEnded()> &run)
{
    AgentEnded ended{};
    try {
        ended = run();
    } catch (const Failure &failure) {
        asked.explain();
        try {
            record.failed(failure.status(), failure.what());
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): main tries again, and tells the user
        }
        throw;
    }
    asked.explain();
    try {
        if (!record.knows_usage()) record.take_usage(sandbox.usage());
        record.ended(ended);
    } catch (const Failure &failure) { // the agent has ended whatever comes of this
        tell(std::string("the end of this session is not recorded: ") + failure.what());
    }
    return ended;
}

} // namespace pi_agent

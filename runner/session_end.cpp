// Removing what sessions leave.
#include "runner/session_end.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "runner/placeholder_removal.hpp"
#include "runner/record.hpp"
#include "runner/scratch_removal.hpp"
#include "runner/session_directory.hpp"
#include "runner/session_list.hpp"
#include "runner/session_record.hpp"
#include "runner/supervise.hpp"

#include <sys/file.h>

namespace pi_agent {

void SessionEnd::end_after_failure() noexcept
{
    try {
        if (end_sandbox(sandbox_)) sandbox_has_ended();
    } catch (const std::exception &failure) {
        record_problem(id_, failure.what());
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
        if (!sandbox_may_live_ || !sandbox_.is_there()) remove_session_with_scratch(root_, id_);
    } catch (const std::exception &failure) {
        record_problem(id_, failure.what());
    }
}

void sweep(const AsRoot &root, Sandbox &sandbox)
{
    const Deadline deadline = in_seconds(1); // for other users' file systems, too, which need not answer
    for (const auto &orphan : find_orphans(root)) {
        // Held until it is removed: a start that has just made its directory waits for this lock, and then finds itself without one.
        const UniqueFd session = try_open_session(open_sessions(), orphan);
        const bool is_held = session && flock(session.get(), LOCK_EX | LOCK_NB) != 0 && defence_is_on("sweep-lock");
        if (!session || is_held || sandbox.may_live(orphan)) continue;
        try { // one user's leftover must not be another's refusal
            // What lies on disk has no session then, and ScratchSweep finds it.
            record_end_of_killed(root, orphan);
            remove_session(root, orphan, [&](FdRef left) { remove_placeholders(root, orphan, left, deadline); });
            record_problem(orphan, "a session directory without a session was removed");
        } catch (const Failure &failure) {
            if (!defence_is_on("sweep-goes-on")) throw;
            record_problem(orphan, std::string("a session directory without a session cannot be removed: ") + failure.what());
        }
    }
}

} // namespace pi_agent

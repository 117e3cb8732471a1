// Ends what a session left: its processes, its mounts, its directories.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/confined/asked_end.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/session_record.hpp"

#include <exception>
#include <functional>
#include <string>

namespace pi_agent {

// --- What a session leaves is removed: at its end, after a failure, and when its runner could not.

// Removes what the session left, whatever happened; a cleanup unit has usually done it already. Borrows both.
class SessionEnd {
public:
    SessionEnd(const AsRoot &root, Sandbox &sandbox, std::string id) : root_(root), sandbox_(sandbox), id_(std::move(id)) {}
    SessionEnd(const SessionEnd &) = delete;
    SessionEnd &operator=(const SessionEnd &) = delete;
    SessionEnd(SessionEnd &&) = delete;
    SessionEnd &operator=(SessionEnd &&) = delete;
    // From here to sandbox_has_ended() nothing is taken from under the agent: if it cannot be told to have ended, then this process' end is
    // its end, and the turn of whoever cleans up after that.
    void sandbox_may_live() noexcept { sandbox_may_live_ = true; }
    void sandbox_has_ended() noexcept { sandbox_may_live_ = false; }
    // Ends the sandbox after a problem. Where the sandbox had ended by itself before, the one may have come of the other: throws Failure
    // with both, unless the problem was a signal.
    void end_after(const std::exception_ptr &problem);
    ~SessionEnd();

private:
    const AsRoot &root_;
    Sandbox &sandbox_;
    std::string id_;
    bool sandbox_may_live_ = false;
};

// Sessions whose runner and sandbox are both gone: after a crash of the host's systemd, or a cleanup that failed.
void sweep(const AsRoot &root, Sandbox &sandbox);

// --- The agent's run, and how it ended in the record, whichever way that was.

// What `run` returns, or throws. By then its end is recorded: before what the session left is removed, because who removes it must find no
// end that is still to be recorded. Where nothing takes that entry, `tell` says so.
AgentEnded run_recorded(SessionRecord &record, AskedEnd &asked, Sandbox &sandbox, const AskedEnd::Tell &tell,
                        const std::function<AgentEnded()> &run);

// --- Removes one session's mounts and directories after its unit has ended: run by a unit of its own, for when no runner is left.

// Idempotent. Kills what is left of the unit's processes, and throws Failure when some stay.
void clean_up_after_unit(const AsRoot &root, const std::string &session_id);

// What `pi-agent-cleanup --when-runner-ends` does (runner/root/method/method_program.hpp): waits at its standard input, and removes the
// session when the runner ended without a word.
void keep_session(const AsRoot &root, const std::string &session_id);

} // namespace pi_agent

// What a session leaves is removed: at its end, after a failure, and when its runner could not.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/method/sandbox.hpp"

#include <exception>
#include <string>

namespace pi_agent {

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

} // namespace pi_agent

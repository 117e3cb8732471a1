// What a session leaves is removed: at its end, after a failure, and when its runner could not.
#pragma once

#include "common/identity.hpp"
#include "runner/systemd_bus.hpp"

#include <string>

namespace pi_agent {

// Removes what the session left, whatever happened; the session's cleanup unit has usually done it already. Borrows both.
class SessionEnd {
public:
    SessionEnd(const AsRoot &root, SystemdBus &systemd, std::string id) : root_(root), systemd_(systemd), id_(std::move(id)) {}
    SessionEnd(const SessionEnd &) = delete;
    SessionEnd &operator=(const SessionEnd &) = delete;
    SessionEnd(SessionEnd &&) = delete;
    SessionEnd &operator=(SessionEnd &&) = delete;
    // From here to unit_has_ended() nothing is taken from under the agent: if it cannot be told to have ended, then this process' end is
    // its end (BindsTo=), and the cleanup unit's turn.
    void unit_may_live() noexcept { unit_may_live_ = true; }
    void unit_has_ended() noexcept { unit_may_live_ = false; }
    // The failure that led here is what counts.
    void end_after_failure() noexcept;
    ~SessionEnd();

private:
    const AsRoot &root_;
    SystemdBus &systemd_;
    std::string id_;
    bool unit_may_live_ = false;
};

// Sessions whose runner and unit are both gone: after a crash of the host's systemd, or a cleanup that failed.
void sweep(const AsRoot &root, SystemdBus &systemd);

} // namespace pi_agent

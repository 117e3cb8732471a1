// The start's place among others of the same caller, and its progress, shown to that caller.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"
#include "common/base/ids.hpp"
#include "common/host/identity.hpp"

#include <functional>
#include <string>

namespace pi_agent {

// --- Bounds how many starts of one user are under way at once. A start costs a runner and a connection to the system bus, of which root
// has a few hundred, and its user decides how long it waits for a request.

// Held as long as the descriptor is open, and gone without a trace with it. Never waits: the caller may freeze this process, and with it a
// lock. Throws Failure(limit) when all of this user's are taken.
UniqueFd take_start_slot(const AsRoot &root, Uid user);

// Looks again for three seconds, in which it holds nothing that others wait for: who starts twenty at once gets twenty. `waiting` is called
// before each look. Throws as above.
UniqueFd wait_for_start_slot(const AsRoot &root, Uid user, const std::function<void()> &waiting);

// --- Tells the user's terminal what the preparation is at, once it takes longer than half a second.

class Progress {
public:
    // `wrapper` is borrowed.
    explicit Progress(FdRef wrapper) : wrapper_(wrapper) {}

    // Never waits: a wrapper that does not read misses it. `doing`: "waiting for …", "reading …".
    void show(const std::string &doing);

private:
    FdRef wrapper_;
    Deadline next_ = Clock::now() + std::chrono::milliseconds(500);
};

} // namespace pi_agent

// Tells the user's terminal what the preparation is at, once it takes longer than half a second.
#pragma once

#include "common/base/channel.hpp"

#include <string>

namespace pi_agent {

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

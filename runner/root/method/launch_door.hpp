// Handing the launcher its control socket where an engine passes no descriptor on: a socket in the session's own /run at which the launcher
// knocks once. It is gone before anything is handed in: the agent finds none.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/ids.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

class LaunchDoor {
public:
    // `session`: its directory, in which nobody but root can name anything. `launcher`: what is handed out; copied.
    LaunchDoor(const std::string &session, FdRef launcher);
    LaunchDoor(const LaunchDoor &) = delete;
    LaunchDoor &operator=(const LaunchDoor &) = delete;
    LaunchDoor(LaunchDoor &&) = delete;
    LaunchDoor &operator=(LaunchDoor &&) = delete;
    ~LaunchDoor();

    // Readable when somebody knocks.
    [[nodiscard]] FdRef fd() const { return listener_; }
    // Who knocks; none where whoever it was is gone again, and the door stays.
    [[nodiscard]] UniqueFd next_guest();
    // Who knocks first is the only one: from here on there is no door. It must be a process of the agent's account that is among
    // `inside`. Throws Failure(unavailable) when it is not.
    void answer(FdRef guest, Uid agent, const std::vector<pid_t> &inside);

private:
    void close();

    std::string path_;
    UniqueFd listener_;
    UniqueFd launcher_;
};

} // namespace pi_agent

// Messages to the wrapper, notices that are sent only once, and which version used a home last.
#pragma once

#include "common/base/request.hpp"
#include "runner/root/session/state_directory.hpp"

namespace pi_agent {

// --- Sends messages to the wrapper. The user can stop the wrapper, and the wrapper need not read. So root waits once for a wrapper
// that does not read, and not again until that wrapper has read something.

class ToWrapper {
public:
    explicit ToWrapper(FdRef wrapper) noexcept : wrapper_(wrapper) {}

    // best_effort: a wrapper that is gone ends the session by itself, and one that does not read misses the message.
    void tell(const RunnerMessage &message) noexcept;
    void tell_all(const std::vector<std::string> &notices) noexcept;
    // Sends without waiting, whatever came before. False when the message did not get there.
    bool tell_at_once(const RunnerMessage &message) noexcept;

private:
    FdRef wrapper_;
    bool reads_ = true;
};

// --- Notices that would be the same at every start: sent once, or once for each place, and again when they change.

// Which of `notices` to send now: all of them, or nothing where the last start had the same ones about `about` (a file of the user's meta).
// A notice that was absent at a start and is back is sent again: somebody had fixed its cause. With `always`, all of them.
std::vector<std::string> untold(const StateDirectory &state, const char *about, std::vector<std::string> notices, bool always);

// The same, once for each `place`: all of them, or nothing where any earlier start sent exactly these about this place.
std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always);

} // namespace pi_agent

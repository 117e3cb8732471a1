// What ends a session that is still being prepared, looked at wherever preparation waits.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/request.hpp"
#include "runner/root/errand/receiver.hpp"

#include <array>
#include <functional>
#include <poll.h>
#include <vector>

namespace pi_agent {

// The user asked for the end (Ctrl-C) before there was an agent: the wrapper is to end as by this signal. No Failure: nothing went wrong.
struct EndedBySignal {
    int number;
};

// Blocks the signals that end the runner, to be read in supervise. Before the sandbox exists, so that none is lost.
UniqueFd watch_termination();

// All descriptors are borrowed.
struct SessionWatch {
    FdRef wrapper;                                 // its socket: hung up
    FdRef termination;                             // from watch_termination: readable
    FdRef receiver = FdRef(-1);                    // its channel: readable
    std::function<void()> hear_receiver = nullptr; // called then; throws when what it heard is the end

    // For poll(2), and what to do when it has returned: throws Failure, or what hear_receiver throws, when the session is to end.
    [[nodiscard]] std::array<pollfd, 3> waits() const noexcept;
    void obey(const pollfd *polled) const;
    // Both at once, without waiting.
    void check() const;
};

// What the wrapper says meanwhile: what asks for the end is heeded at once, the rest waits for the agent.
class EarlyMessages {
public:
    explicit EarlyMessages(Receiver &receiver) : receiver_(receiver) {}

    // The next one, when the receiver's channel has input. Throws EndedBySignal, or Failure when the wrapper is gone.
    void hear();
    [[nodiscard]] const std::vector<WrapperMessage> &messages() const noexcept { return messages_; }

private:
    Receiver &receiver_;
    std::vector<WrapperMessage> messages_;
};

} // namespace pi_agent

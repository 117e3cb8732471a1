// Carries the bytes of one connection to a port of a session, on either side of the sandbox (wrapper/session_client.hpp).
#pragma once

#include "common/base/channel.hpp"

#include <functional>
#include <memory>

namespace pi_agent {

// Until there is nothing more to read, or nobody to write to: then the errno. SIGPIPE must be blocked.
int copy_all(FdRef from, FdRef to) noexcept;

// Between a socket here and two pipes that lead across. Pipes carry no descriptors: a socket from the other side could linger in a close
// (SO_LINGER), and one of the host's network would lead a session out of its own.
struct PortConnection {
    UniqueFd socket;
    UniqueFd in;                        // what comes from the other side
    UniqueFd out;                       // what goes there
    std::shared_ptr<void> counted = {}; // let go of at its end
};

// Until both directions have ended, on two threads of its own, which take no signal: each end is passed on for itself, as TCP has it.
// best_effort: what cannot be started is closed.
void carry_connection(PortConnection connection) noexcept;

// Runs `work` on a thread that takes no signal: this process waits for its signals elsewhere. Throws std::system_error.
void run_beside(std::function<void()> work);

} // namespace pi_agent

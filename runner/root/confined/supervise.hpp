// From the sandbox's start to its end: hands the launch record over, passes signals on, ends the sandbox when the wrapper is gone.
#pragma once

#include "common/base/request.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/to_wrapper.hpp"
#include "runner/wire/launch_record.hpp"

#include <functional>
#include <string>

namespace pi_agent {

struct Session {
    FdRef wrapper; // the user's wrapper: watched, never received from
    ToWrapper &to_wrapper;
    Receiver &receiver; // what the wrapper says
    FdRef control;      // pi-agent-exec
    FdRef termination;  // from watch_termination
    // Sends the launch record, with the agent's end of the terminal where it has one, to pi-agent-exec.
    std::function<void(FdRef terminal)> hand_record_over;
    std::vector<WrapperMessage> early; // what the wrapper said before
    // Once the launcher runs, before anything of the agent's is sent in; a Failure of it ends the sandbox.
    std::function<void()> require_enforced;
    // pi-agent-exec has said that the agent ended, and waits for an answer: the sandbox is still there, and what the kernel counted in it.
    std::function<void()> agent_has_ended;
    // It was answered: what ends now ends by itself, and is waited for.
    std::function<void()> while_it_ends;
};

// Ends a sandbox in which no agent has been started. False when it does not end in time.
bool end_sandbox(Sandbox &sandbox);

// Returns when all of it has ended, in every case. Throws Failure when the agent was never started. `terminal` is the agent's end of the
// session's pty, if it has one.
AgentEnded supervise(Sandbox &sandbox, const Session &session, UniqueFd terminal);

} // namespace pi_agent

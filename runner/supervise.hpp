// From the unit's start to its end: hands the launch record over, passes signals on, ends the unit when the wrapper is gone.
#pragma once

#include "common/request.hpp"
#include "runner/launch_record.hpp"
#include "runner/receiver.hpp"
#include "runner/systemd_bus.hpp"

#include <functional>
#include <string>

namespace pi_agent {

// Blocks the signals that end the runner, to be read in supervise. Before the unit exists, so that none is lost.
UniqueFd watch_termination();

struct Session {
    std::string service; // unit name
    FdRef wrapper;       // the user's wrapper: watched, never received from
    Receiver &receiver;  // what the wrapper says
    FdRef control;       // pi-agent-exec
    FdRef termination;   // from watch_termination
    const LaunchRecord &record;
    std::vector<WrapperMessage> early; // what the wrapper said before
    // Once the unit runs, before anything of the agent's is sent in; a Failure of it ends the unit.
    std::function<void()> require_enforced;
};

// Ends a unit in which no agent has been started. False when it does not end in time.
bool end_unit(SystemdBus &systemd, const std::string &service);

// Returns when the unit has ended, in every case. Throws Failure when the agent was never started. `terminal` is the agent's end of the
// session's pty, if it has one.
AgentEnded supervise(SystemdBus &systemd, const Session &session, UniqueFd terminal);

} // namespace pi_agent

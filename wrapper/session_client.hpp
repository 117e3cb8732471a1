// The wrapper's side of a session: hands the request over, passes signals on, prints what the runner says, learns how the agent ended.
#pragma once

#include "common/request.hpp"

#include <array>

namespace pi_agent {

struct ClientInput {
    Request request;
    FdRef cwd;
    std::array<int, 3> stdio; // borrowed
};

// Throws Failure with what the runner, or sudo, refused.
AgentEnded run_client(const ClientInput &input);

// Ends this process as the agent ended: its exit code, or its signal again, without a core file.
[[noreturn]] void end_as(const AgentEnded &ended);

} // namespace pi_agent

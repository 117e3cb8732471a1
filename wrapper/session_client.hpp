// The wrapper's side of a session: hands the request over, ties the terminal to the session's, passes signals on, learns how the agent
// ended.
#pragma once

#include "common/base/request.hpp"
#include "wrapper/user_terminal.hpp"

#include <array>

namespace pi_agent {

struct ClientInput {
    Request request;
    FdRef cwd;
    std::array<int, 3> stdio; // borrowed
    std::optional<UserTerminal> terminal;
    bool reaches_clipboard; // what the agent writes: the policy's wrapper.clipboard
};

// Throws Failure with what the runner, or sudo, refused. The terminal is restored in every case. `session` becomes the session's id, also
// where this throws later; it stays empty where no agent was started.
AgentEnded run_client(ClientInput input, std::string &session);

// Ends this process as the agent ended: its exit code, or its signal again, without a core file.
[[noreturn]] void end_as(const AgentEnded &ended);

} // namespace pi_agent

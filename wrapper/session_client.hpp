// The wrapper's side of a session: the request, the terminal, signals, and how the agent ended.
#pragma once

#include "wrapper/carrier.hpp"
#include "wrapper/user_terminal.hpp"

namespace pi_agent {

// The agent has them now; a copy kept here would keep a pipe open after it.
void let_go_of_input_and_output();

struct ClientInput {
    Request request;
    FdRef cwd;
    std::array<int, 3> stdio; // borrowed
    std::optional<UserTerminal> terminal;
    bool reaches_clipboard;             // the agent's output may; the policy's wrapper.clipboard
    std::optional<JobCommand> job = {}; // for a session on a node of the cluster, instead of this host
};

// Throws Failure with the refusal of the runner or sudo. Restores the terminal in every case. `session` becomes the session's id, even if
// this throws later; it stays empty if no agent started.
AgentEnded run_client(ClientInput input, std::string &session);

} // namespace pi_agent

// The wrapper's side of a session: the request, the terminal, signals, and how the agent ended.
#pragma once

#include "wrapper/carrier.hpp"
#include "wrapper/user_terminal.hpp"

namespace pi_agent {

// What the wrapper says to its peer: the request, then messages. Never waits for it: sudo may not have started the runner yet.
class ToPeer {
public:
    // Borrows the descriptors until the first go_on(): a fresh socket always takes the packet that carries them.
    ToPeer(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio);
    ToPeer(const ToPeer &) = delete;
    ToPeer &operator=(const ToPeer &) = delete;
    // Sends what the peer takes of the request now.
    void go_on();
    [[nodiscard]] bool has_asked() const noexcept { return has_asked_; }
    // After the request. best_effort: a peer that is gone is seen by its end of the channel.
    void tell(const WrapperMessage &message);

private:
    FdRef channel_;
    const std::string bytes_;
    OutgoingRecord request_;
    std::vector<WrapperMessage> untold_;
    bool has_asked_ = false;
};

// The agent has them now; a copy kept here would keep a pipe open after it.
void let_go_of_input_and_output();

// The wrapper's side of a session: sends the request, connects the terminal with the session's, passes signals on, learns how the agent
// ended.
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

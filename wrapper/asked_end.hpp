// What ends a wait of the wrapper's: a signal, which is for the agent first, and for this process if it reaches nothing.
#pragma once

#include "common/ask/runner_process.hpp"
#include "common/base/channel.hpp"
#include "common/base/request.hpp"

#include <optional>
#include <string>

namespace pi_agent {

class AskedEnd {
public:
    // A signal has come and is on its way. Comes it once more before it is answered, then this process waits no more.
    void ask(int number);
    // The agent has it.
    void answered() noexcept { due_.reset(); }
    // For poll(2): when to look.
    [[nodiscard]] Deadline due() const noexcept { return due_.value_or(Deadline::max()); }
    // Call it when nothing is heard: this process may be the late one.
    void look() noexcept { is_over_ = is_over_ || (due_ && Clock::now() >= *due_); }
    // This process waits no more.
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    // As this process then ends. Says what goes on without it, and forgets the session's id: nothing looks at what a session left that may
    // still be ending.
    [[nodiscard]] AgentEnded tell(const SessionPeer &peer, bool has_runner, std::string &session) const;

private:
    int number_ = 0;
    Deadline asked_at_{};
    std::optional<Deadline> due_; // for the answer
    bool is_over_ = false;
};

// Ends this process as the agent ended: its exit status, or its signal again, without a core file.
[[noreturn]] void end_as(const AgentEnded &ended);

} // namespace pi_agent

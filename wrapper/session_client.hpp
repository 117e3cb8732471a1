// The wrapper's side of a session: what it says to its user, how it asks, and how it ends.
#pragma once

#include "wrapper/carrier.hpp"

namespace pi_agent {

// Says something on standard error, where a reader that does not read, and a terminal that is paused, hold nothing up: waits a second at
// most, and not again until something was taken. best_effort: what is not taken by then is lost.
void say(std::string_view text) noexcept;

// A line on the terminal of standard error that shows the current step. It disappears before anything else is written.
class ProgressLine {
public:
    // On a line of its own, or after the agent's output, which may have ended in the middle of a line.
    enum class Place { own_line, behind_output };
    explicit ProgressLine(Place place = Place::own_line) noexcept : place_(place) {}
    ProgressLine(const ProgressLine &) = delete;
    ProgressLine &operator=(const ProgressLine &) = delete;
    ~ProgressLine() { clear(); }

    // Only if standard error is a terminal that can erase a line (not TERM=dumb).
    void show(const std::string &text);
    void clear();

private:
    Place place_;
    bool is_shown_ = false;
};

// What ends a wait of the wrapper's: a signal, which is for the agent first, and for this process if it reaches nothing.
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

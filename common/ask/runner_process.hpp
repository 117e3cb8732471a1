// The runner as a child of its caller's, through sudo: its standard input is our socket, nothing is passed in arguments or environment.
#pragma once

#include "common/base/channel.hpp"

#include <functional>
#include <sys/types.h>

namespace pi_agent {

// A refusal that the runner does not see, so the wrapper records it. The runner records its own refusals.
class EarlyRefusal : public Failure {
public:
    explicit EarlyRefusal(const Failure &failure) : Failure(failure) {}
};

// Throws Failure where sudo cannot make this process root, whatever its rules say: inside a session, and in a user namespace.
void require_sudo_can_work();

// Who answers a request for a session, as a child of its caller's.
class SessionPeer {
public:
    SessionPeer() = default;
    SessionPeer(const SessionPeer &) = delete;
    SessionPeer &operator=(const SessionPeer &) = delete;
    virtual ~SessionPeer() = default;

    [[nodiscard]] virtual std::string name() const = 0; // for words to the user
    [[nodiscard]] virtual FdRef channel() const noexcept = 0;
    [[nodiscard]] virtual bool has_ended() const noexcept = 0;
    // Call it on SIGCHLD.
    virtual void reap() = 0;
    // Throws Failure if it was killed: the session ended with it, whatever the agent did.
    virtual void require_orderly_end() = 0;
    // The reason why nobody answered, as a Failure to throw. Call it when the peer has ended, or is late with that.
    [[noreturn]] virtual void explain_silence() = 0;
    // The session has ended, and the terminal is the user's again: shows what is left to say. Asks `has_had_enough` when `signals` can be
    // read, and ends then if so.
    virtual void bid_farewell(FdRef /*signals*/, const std::function<bool()> & /*has_had_enough*/) {}
};

class RunnerProcess : public SessionPeer {
public:
    // Starts sudo in a session of its own, so that the terminal's signals reach only its caller. A question waits in the socket before sudo
    // runs: that is how the runner tells it from a request (runner/root/own/questions.hpp).
    explicit RunnerProcess(std::string_view question = {});

    [[nodiscard]] std::string name() const override { return "sudo (process " + std::to_string(pid_) + ")"; }
    [[nodiscard]] FdRef channel() const noexcept override { return channel_; }
    [[nodiscard]] bool has_ended() const noexcept override { return ended_; }
    void reap() override;
    void require_orderly_end() override;          // of the runner, or a sudo that waits for it
    [[noreturn]] void explain_silence() override; // from sudo's exit status and standard error
    void wait_for_end();                          // for some seconds, where no signals are watched

private:
    std::string read_complaint();

    UniqueFd channel_;
    UniqueFd complaint_; // sudo's standard error
    pid_t pid_ = -1;
    bool ended_ = false;
    int status_ = 0;
};

// Sends one question, and returns the bytes of its answer. Throws Failure without one, with the reason.
std::string ask_runner(std::string_view question);

} // namespace pi_agent

// Waiting for the answer to a signal, and ending by it.
#include "wrapper/asked_end.hpp"

#include "common/seams/seams.hpp"
#include "wrapper/standard_error.hpp"

#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// The runner gives the session's first process a second (runner/root/confined/launcher.cpp); a start that is under way ends faster.
constexpr auto end_patience = std::chrono::milliseconds(1600);
// A second signal within this time comes with the first, as of a terminal that hangs up and of the shell in it.
constexpr auto same_signal = std::chrono::milliseconds(200);

} // namespace

void AskedEnd::ask(int number)
{
    const Deadline now = Clock::now();
    if (due_) {
        is_over_ = is_over_ || now - asked_at_ >= same_signal;
        return;
    }
    number_ = number;
    asked_at_ = now;
    if (defence_is_on("signals-end-pi")) due_ = now + end_patience;
}

AgentEnded AskedEnd::tell(const SessionPeer &peer, bool has_runner, std::string &session) const
{
    std::string text = std::string("pi: ended by SIG") + sigabbrev_np(number_) + ", though ";
    if (!has_runner)
        text += peer.name() +
                " has not answered: it belongs to root, and goes on until what it waits for answers; ask the administrator to run: "
                "sudo pi-agentctl doctor";
    else
        text += std::string("the runner has not answered; it ends the session") +
                (!session.empty() ? ", and pi does not look at what that left" : "") + ". What still runs: pi-agentctl sessions";
    say(text + "\n");
    session.clear();
    return AgentEnded{true, number_};
}

void end_as(const AgentEnded &ended)
{
    if (!ended.by_signal) _exit(ended.value);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(ended.value, SIG_DFL);
    // This one alone: another that is pending must not come first.
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, ended.value);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    kill(getpid(), ended.value);
    _exit(128 + ended.value);
}

} // namespace pi_agent

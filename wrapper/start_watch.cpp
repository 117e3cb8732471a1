// Tells what a start waits for, draws the progress line, and ends a wait by a signal.
#include "wrapper/session_client.hpp"

#include "common/seams/seams.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>

namespace pi_agent {

// Writing to standard error without waiting for its reader. Its flags are others' too, so poll(2) is asked before each write.

namespace {

constexpr int reader_patience_seconds = 1;

bool is_taken = true; // the last text

} // namespace

void say(std::string_view text) noexcept
{
    const std::size_t at_once = isatty(STDERR_FILENO) == 1 ? careful_write : PIPE_BUF;
    is_taken = write_carefully(FdRef(STDERR_FILENO), text, at_once, in_seconds(is_taken ? reader_patience_seconds : 0));
}

// Drawing and erasing the progress line.

namespace {

// ECMA-48 (EL); DECSC, DECRC and DECAWM as the VT100 has them. A text that is wider than the terminal stays in its line, which is all that
// can be erased.
constexpr const char *erase_line = "\r\x1b[K";
constexpr const char *keep_place = "\0337";
constexpr const char *erase_from_there = "\0338\x1b[K";
constexpr const char *wrap_off = "\x1b[?7l";
constexpr const char *wrap_on = "\x1b[?7h";

bool can_erase() noexcept
{
    const char *terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb" && *terminal != '\0';
}

} // namespace

void ProgressLine::show(const std::string &text)
{
    if (!can_erase()) return;
    const bool is_behind = place_ == Place::behind_output;
    if (is_behind) clear();
    say((is_behind ? keep_place : erase_line) + (wrap_off + ("pi: " + text)) + wrap_on);
    is_shown_ = true;
}

void ProgressLine::clear()
{
    if (is_shown_) say(place_ == Place::behind_output ? erase_from_there : erase_line);
    is_shown_ = false;
}

// Waiting for the answer to a signal, and ending by it.

namespace {

// The runner gives the session's first process a second (runner/root/confined/supervise.cpp); a start that is under way ends faster.
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

// Telling, once, what a start waits for.
#include "wrapper/start_watch.hpp"

#include "wrapper/standard_error.hpp"

#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int silence_seconds = 2;
constexpr const char *remedy_of_sudo = "; if it goes on, ask the administrator to run: sudo pi-agentctl doctor";
constexpr const char *remedy_of_others = "; if it goes on, ask the administrator to read: journalctl -t pi-agent-runner";

} // namespace

Deadline StartWatch::in_patience()
{
    return in_seconds(silence_seconds);
}

void StartWatch::hear(const Preparing &preparing, bool is_seen)
{
    const bool is_news = preparing.doing != doing_ || !has_heard_;
    has_heard_ = true;
    if (is_news && due_ != Deadline::max()) due_ = in_patience();
    doing_ = preparing.doing;
    takes_long_ = preparing.takes_long;
    if (takes_long_ && is_seen) line_.show(doing_);
}

void StartWatch::look(bool is_seen)
{
    if (Clock::now() < due_) return;
    due_ = Deadline::max(); // once
    if (!is_seen) return;
    line_.clear();
    say("pi: " + doing_ + ": two seconds without progress; Ctrl-C or kill " + std::to_string(getpid()) + " ends pi" +
        (takes_long_  ? ""
         : has_heard_ ? remedy_of_others
                      : remedy_of_sudo) +
        "\n");
}

void StartWatch::end()
{
    line_.clear();
    due_ = Deadline::max();
    has_heard_ = true;
}

} // namespace pi_agent

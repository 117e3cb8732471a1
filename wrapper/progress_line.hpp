// A line on the terminal of standard error that shows the current step. It disappears before anything else is written.
#pragma once

#include <string>

namespace pi_agent {

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

} // namespace pi_agent

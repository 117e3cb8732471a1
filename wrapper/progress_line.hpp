// A text on the terminal behind standard error that says what is being done, and is gone before anything else is written.
#pragma once

#include <string>

namespace pi_agent {

class ProgressLine {
public:
    // On a line of its own, or behind what an agent wrote, which may have ended in the middle of a line.
    enum class Place { own_line, behind_output };
    explicit ProgressLine(Place place = Place::own_line) noexcept : place_(place) {}
    ProgressLine(const ProgressLine &) = delete;
    ProgressLine &operator=(const ProgressLine &) = delete;
    ~ProgressLine() { clear(); }

    // Only where standard error is a terminal that can erase a line (not TERM=dumb).
    void show(const std::string &text);
    void clear();

private:
    Place place_;
    bool is_shown_ = false;
};

} // namespace pi_agent

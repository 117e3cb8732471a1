// One line of the terminal behind standard error that says what is being done, and is gone before anything else is written.
#pragma once

#include <string>

namespace pi_agent {

class ProgressLine {
public:
    ProgressLine() = default;
    ProgressLine(const ProgressLine &) = delete;
    ProgressLine &operator=(const ProgressLine &) = delete;
    ProgressLine(ProgressLine &&) = delete;
    ProgressLine &operator=(ProgressLine &&) = delete;
    ~ProgressLine() { clear(); }

    // Only where standard error is a terminal that can erase a line (not TERM=dumb).
    void show(const std::string &text);
    void clear();

private:
    bool is_shown_ = false;
};

} // namespace pi_agent

// What a start waits for: a line on the terminal where it is known to take long, and a sentence for every user after two seconds.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/request.hpp"
#include "wrapper/progress_line.hpp"

#include <string>

namespace pi_agent {

class StartWatch {
public:
    // `first`: what is waited for until the runner says something.
    explicit StartWatch(const std::string &first) : doing_("waiting for " + first) {}
    // `is_seen`: the job has no terminal, or has it in the foreground. In the background a line belongs to the shell.
    void hear(const Preparing &preparing, bool is_seen);
    // Something else is about to be written.
    void clear() { line_.clear(); }
    void end();
    // When to look though nothing is heard.
    [[nodiscard]] Deadline due() const noexcept { return due_; }
    void look(bool is_seen);
    [[nodiscard]] bool has_heard() const noexcept { return has_heard_; }

private:
    static Deadline in_patience();

    std::string doing_;
    ProgressLine line_;
    Deadline due_ = in_patience();
    bool has_heard_ = false;
    bool takes_long_ = false; // known to, and so nothing is wrong
};

} // namespace pi_agent

// The changes that apply makes to the host, said one by one; with --dry-run only said.
#pragma once

#include <ostream>
#include <string>

namespace pi_agent {

class Changes {
public:
    Changes(bool dry_run, std::ostream &out) : dry_run_(dry_run), out_(out) {}

    // Does `action` and then says so; `what` reads as an order, e.g. "create the account pi-agent".
    template <typename Action>
    void make(const std::string &what, const Action &action)
    {
        if (!dry_run_) action();
        out_ << (dry_run_ ? "would: " : "done: ") << what << std::endl;
        ++count_;
    }

    [[nodiscard]] bool dry_run() const noexcept { return dry_run_; }
    [[nodiscard]] int count() const noexcept { return count_; }

private:
    bool dry_run_;
    std::ostream &out_;
    int count_ = 0;
};

} // namespace pi_agent

// The changes that a command makes to the host, said one by one; with --dry-run only said.
#pragma once

#include <ostream>
#include <string>

namespace pi_agent {

class Changes {
public:
    Changes(bool dry_run, std::ostream &out) : dry_run_(dry_run), out_(out) {}

    // Does `action` and then says so; `what` reads as an order, e.g. "create the account pi-agent". A dry run shows `difference` too, the
    // lines of a file that would change (admin/text/text_diff.hpp).
    template <typename Action>
    void make(const std::string &what, const Action &action, const std::string &difference = {})
    {
        if (!dry_run_) action();
        out_ << (dry_run_ ? "would: " : "done: ") << what << '\n';
        if (dry_run_) out_ << difference;
        out_ << std::flush;
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

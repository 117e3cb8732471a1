// Collects the mistakes of a policy, so that an administrator sees all of them at once.
#pragma once

#include "common/base/error.hpp"

#include <cstddef>

namespace pi_agent {

constexpr std::size_t most_diagnostics = 100; // a megabyte of nonsense must not become a gigabyte of messages

class Problems {
public:
    void add(Position where, std::string key, std::string problem, std::string remedy);
    [[nodiscard]] bool empty() const noexcept { return diagnostics_.empty(); }
    // True if something was reported for exactly this key.
    [[nodiscard]] bool has(std::string_view key) const;
    // The same for this key or anything below it.
    [[nodiscard]] bool has_within(std::string_view key) const;
    void add_all(const std::vector<Diagnostic> &diagnostics);
    [[nodiscard]] const std::vector<Diagnostic> &all() const noexcept { return diagnostics_; }
    // Throws PolicyError if anything was added.
    void throw_if_any() const;

private:
    std::vector<Diagnostic> diagnostics_;
    bool full_ = false;
};

// "; did you mean 'x'?" for the candidate that `word` misspells, or "". For the end of a diagnostic's problem.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view> &candidates);

// "'text'" escaped wherever it could deceive a reader, and cut if it is long.
std::string quote(std::string_view text);

} // namespace pi_agent

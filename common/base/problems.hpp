// Collects what is wrong with a policy, so that an administrator sees all of it at once.
#pragma once

#include "common/base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

constexpr std::size_t most_diagnostics = 100; // a megabyte of nonsense must not become a gigabyte of messages

class Problems {
public:
    void add(Position where, std::string key, std::string problem, std::string remedy);
    [[nodiscard]] bool empty() const noexcept { return diagnostics_.empty(); }
    // True when something was reported of just this key.
    [[nodiscard]] bool has(std::string_view key) const;
    // The same of it, or of anything in it.
    [[nodiscard]] bool has_within(std::string_view key) const;
    void add_all(const std::vector<Diagnostic> &diagnostics);
    [[nodiscard]] const std::vector<Diagnostic> &all() const noexcept { return diagnostics_; }
    // Throws PolicyError when anything was added.
    void throw_if_any() const;

private:
    std::vector<Diagnostic> diagnostics_;
    bool full_ = false;
};

// "; did you mean 'x'?" for the candidate that `word` misspells, or "". For the end of a diagnostic's problem.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view> &candidates);

// "'text'" with everything escaped that could deceive a reader, and cut where it is long.
std::string quote(std::string_view text);

} // namespace pi_agent

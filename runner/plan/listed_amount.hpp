// How much the reader of the config has listed, and what most of it comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace pi_agent {

constexpr std::size_t entry_limit = 200'000;
constexpr std::uint64_t total_limit = std::uint64_t{2} << 30U;

class ListedAmount {
public:
    // `path` is beneath the directory that is listed. False when it is one too many.
    [[nodiscard]] bool take_entry(const std::string &path);
    [[nodiscard]] bool take_bytes(std::uint64_t count);
    [[nodiscard]] std::size_t entries() const noexcept { return entries_; }
    // The first name of the paths that the most entries had.
    [[nodiscard]] std::string largest_part() const;

private:
    std::size_t entries_ = 0;
    std::uint64_t bytes_ = 0;
    std::map<std::string, std::size_t> parts_;
};

} // namespace pi_agent

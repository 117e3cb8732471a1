// A range of IP addresses, written as "10.0.0.0/8" or "fd00::/8".
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pi_agent {

struct IpRange {
    std::vector<std::uint8_t> address; // 4 or 16 bytes, the first one first; no bit beyond the prefix
    unsigned prefix;
    [[nodiscard]] bool is_v6() const noexcept { return address.size() == 16; }
};

struct RangeProblem {
    std::string text;
    std::string remedy;
};

// Strict: a single address also needs its prefix length, no bit is set beyond the prefix, and a range of every address is refused.
std::variant<IpRange, RangeProblem> parse_ip_range(const std::string &text);

// As a policy writes it.
std::string to_string(const IpRange &range);

// Whether an address is in both.
bool overlap(const IpRange &one, const IpRange &other);

// 127.0.0.0/8 and ::1/128.
std::vector<IpRange> loopback_ranges();

} // namespace pi_agent

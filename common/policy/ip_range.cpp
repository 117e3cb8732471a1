// Reading ranges of IP addresses, strictly.
#include "common/policy/ip_range.hpp"

#include "common/base/text.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <optional>
#include <sys/socket.h>

namespace pi_agent {

namespace {

const char *const as_written = "write it like 10.0.0.0/8 or \"fd00::/8\"; names stand in {hosts: [...]}";

std::optional<std::vector<std::uint8_t>> parse_address(const std::string &text)
{
    std::vector<std::uint8_t> bytes(text.find(':') == std::string::npos ? 4 : 16);
    if (inet_pton(bytes.size() == 4 ? AF_INET : AF_INET6, text.c_str(), bytes.data()) != 1) return std::nullopt;
    return bytes;
}

// What systemd's own files may say in this place, and modes of the policy.
std::optional<RangeProblem> problem_of_word(const std::string &text)
{
    if (text == "any" || text == "full") return RangeProblem{"is not a range of addresses", "say 'network: full' for no restriction"};
    if (text == "loopback" || text == "none")
        return RangeProblem{"is not a range of addresses", "say 'network: " + text + "', without a list"};
    if (text == "localhost") return RangeProblem{"is not a range of addresses", "write 127.0.0.0/8 and \"::1/128\""};
    return std::nullopt;
}

// 1 to `bits`, as a number is written.
std::optional<unsigned> parse_prefix(const std::string &text, std::size_t bits)
{
    const auto prefix = to_number<unsigned>(text);
    return prefix && text.front() != '0' && *prefix <= bits ? prefix : std::nullopt;
}

std::vector<std::uint8_t> without_bits_beyond(std::vector<std::uint8_t> address, unsigned prefix)
{
    for (unsigned index = 0; index < address.size(); ++index) {
        const unsigned kept = std::min(8U, prefix - std::min(prefix, index * 8));
        address[index] &= static_cast<std::uint8_t>(0xFF00U >> kept);
    }
    return address;
}

// ::ffff:0:0/96: the kernel sends it as IPv4, so no rule for IPv6 ever sees it.
bool is_mapped_v4(const IpRange &range)
{
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    return range.is_v6() && range.prefix >= mapped.size() * 8 && std::equal(mapped.begin(), mapped.end(), range.address.begin());
}

} // namespace

std::variant<IpRange, RangeProblem> parse_ip_range(const std::string &text)
{
    if (auto problem = problem_of_word(text)) return *problem;
    const auto slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    if (!address || text.find('\0') != std::string::npos) return RangeProblem{"is not a range of IP addresses", as_written};
    const std::string bits = std::to_string(address->size() * 8);
    if (slash == std::string::npos) return RangeProblem{"has no prefix length", "write " + text + "/" + bits + " for this one address"};
    const std::string length = text.substr(slash + 1);
    if (length == "0") return RangeProblem{"is every address", "say 'network: full' for no restriction, or name smaller ranges"};
    const auto prefix = parse_prefix(length, address->size() * 8);
    if (!prefix) return RangeProblem{"has a prefix length that is not a number from 1 to " + bits, as_written};
    IpRange range{without_bits_beyond(*address, *prefix), *prefix};
    if (range.address != *address)
        return RangeProblem{"has bits beyond its prefix length",
                            "write " + to_string(range) + ", or " + text.substr(0, slash) + "/" + bits + " for this one address"};
    if (is_mapped_v4(range)) return RangeProblem{"is IPv4 in the form of IPv6, which matches nothing", "write it as IPv4"};
    return range;
}

std::string to_string(const IpRange &range)
{
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(range.is_v6() ? AF_INET6 : AF_INET, range.address.data(), text.data(), text.size());
    return text.data() + ("/" + std::to_string(range.prefix));
}

bool overlap(const IpRange &one, const IpRange &other)
{
    const unsigned common = std::min(one.prefix, other.prefix);
    return one.is_v6() == other.is_v6() && without_bits_beyond(one.address, common) == without_bits_beyond(other.address, common);
}

std::vector<IpRange> loopback_ranges()
{
    return {{{127, 0, 0, 0}, 8}, {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128}};
}

} // namespace pi_agent

// Handing out addresses for names, and finding the names again.
#include "gate/name_table.hpp"

#include <algorithm>

namespace pi_agent {

namespace ip = boost::asio::ip;

namespace {

constexpr std::uint32_t first_v4 = 0xC6120000; // 198.18.0.0
constexpr std::uint32_t count_v4 = 1U << 17U;  // of a /15
// A unique local prefix (RFC 4193) whose forty random bits are these.
constexpr ip::address_v6::bytes_type prefix_v6 = {0xfd, 0x70, 0x69, 0x2d, 0x67, 0x61, 0x74, 0x65, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr std::size_t prefix_bytes = 12;

ip::address_v6 to_v6(const ip::address_v4 &address)
{
    ip::address_v6::bytes_type bytes = prefix_v6;
    const auto last = address.to_bytes();
    std::copy(last.begin(), last.end(), bytes.begin() + prefix_bytes);
    return ip::address_v6(bytes);
}

// The address of IPv4 that it is, or has at its end; 0.0.0.0 for any other.
ip::address_v4 to_v4(const Address &address)
{
    if (address.is_v4()) return address.to_v4();
    const auto bytes = address.to_v6().to_bytes();
    if (address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6());
    if (!std::equal(bytes.begin(), bytes.begin() + prefix_bytes, prefix_v6.begin())) return {};
    return ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]});
}

} // namespace

NameAddresses NameTable::addresses_of(const std::string &name)
{
    auto found = numbers_.find(name);
    if (found == numbers_.end()) {
        if (order_.size() == name_table_limit) {
            const auto oldest = names_.find(order_.front());
            numbers_.erase(oldest->second);
            names_.erase(oldest);
            order_.pop_front();
        }
        found = numbers_.emplace(name, next_).first;
        names_.emplace(next_, name);
        order_.push_back(next_);
        next_ = next_ + 1 < count_v4 - 1 ? next_ + 1 : 1;
    }
    const ip::address_v4 address(first_v4 + found->second);
    return {address, to_v6(address)};
}

std::string NameTable::name_of(const Address &address) const
{
    if (!is_synthetic(address)) return {};
    const auto found = names_.find(to_v4(address).to_uint() - first_v4);
    return found == names_.end() ? "" : found->second;
}

bool NameTable::is_synthetic(const Address &address)
{
    const std::uint32_t number = to_v4(address).to_uint();
    return number >= first_v4 && number - first_v4 < count_v4;
}

} // namespace pi_agent

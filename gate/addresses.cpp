// Ranges of addresses that are not of the Internet (the IANA registries of special-purpose addresses, RFC 6890).
#include "gate/addresses.hpp"

#include "common/seams/seams.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace ip = boost::asio::ip;

namespace {

constexpr std::array reserved_v4 = {
    "0.0.0.0/8",        // this network; the kernel takes 0.0.0.0 for loopback
    "10.0.0.0/8",       // private
    "100.64.0.0/10",    // shared: behind a provider's NAT, and the metadata of one cloud
    "127.0.0.0/8",      // loopback
    "169.254.0.0/16",   // link-local, and the metadata of most clouds
    "172.16.0.0/12",    // private
    "192.0.0.0/24",     // protocols
    "192.0.2.0/24",     // documentation
    "192.88.99.0/24",   // 6to4 relays
    "192.168.0.0/16",   // private
    "198.18.0.0/15",    // benchmarks, and what the gate itself hands out
    "198.51.100.0/24",  // documentation
    "203.0.113.0/24",   // documentation
    "224.0.0.0/4",      // multicast
    "240.0.0.0/4",      // reserved, and broadcast
    "168.63.129.16/32", // what a cloud serves its machines at a public address
};

constexpr std::array reserved_v6 = {
    "2001::/23",     // protocols: Teredo, benchmarks and others
    "2001:db8::/32", // documentation
    "2002::/16",     // 6to4: any IPv4 inside
    "3fff::/20",     // documentation
};

const std::vector<ip::network_v4> &ranges_v4()
{
    static const std::vector<ip::network_v4> ranges = [] {
        std::vector<ip::network_v4> made;
        for (const char *text : reserved_v4)
            made.push_back(ip::make_network_v4(text));
        return made;
    }();
    return ranges;
}

const std::vector<ip::network_v6> &ranges_v6()
{
    static const std::vector<ip::network_v6> ranges = [] {
        std::vector<ip::network_v6> made;
        for (const char *text : reserved_v6)
            made.push_back(ip::make_network_v6(text));
        return made;
    }();
    return ranges;
}

// Of an address below a prefix of so many bits. The bits from 64 to 71 are left out.
ip::address_v4 inside_of(const ip::address_v6 &address, unsigned bits)
{
    constexpr std::size_t left_out = 8;
    const auto bytes = address.to_bytes();
    ip::address_v4::bytes_type inside{};
    std::size_t at = bits / 8;
    for (auto &byte : inside) {
        if (at == left_out) ++at;
        byte = bytes.at(at++);
    }
    return ip::address_v4(inside);
}

} // namespace

bool is_in(const Address &address, const ip::network_v4 &range)
{
    return address.is_v4() && ip::network_v4(address.to_v4(), range.prefix_length()).network() == range.network();
}

bool is_in(const Address &address, const ip::network_v6 &range)
{
    return address.is_v6() && ip::network_v6(address.to_v6(), range.prefix_length()).network() == range.network();
}

Address within(const Address &address)
{
    if (!address.is_v6()) return address;
    const auto bytes = address.to_v6().to_bytes();
    static const ip::network_v6 translated = ip::make_network_v6("64:ff9b::/96");
    if (!address.to_v6().is_v4_mapped() && !is_in(address, translated)) return address;
    return ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]});
}

std::vector<ip::network_v6> translating_prefixes(const std::vector<Address> &known)
{
    constexpr unsigned lengths[] = {32, 40, 48, 56, 64, 96}; // RFC 6052, 2.2
    std::vector<ip::network_v6> prefixes;
    for (const auto &address : known) {
        if (!address.is_v6()) continue;
        for (const unsigned bits : lengths) {
            const ip::network_v6 prefix(address.to_v6(), static_cast<unsigned short>(bits));
            const std::uint32_t inside = inside_of(address.to_v6(), bits).to_uint();
            if (inside == 0xC00000AA || inside == 0xC00000AB) prefixes.push_back(prefix.canonical()); // 192.0.0.170 and .171 (RFC 7050, 8)
        }
    }
    return prefixes;
}

Address translated(const Address &address, const std::vector<ip::network_v6> &prefixes)
{
    const auto below = std::find_if(prefixes.begin(), prefixes.end(), [&](const auto &prefix) { return is_in(address, prefix); });
    if (below == prefixes.end() || !defence_is_on("gate-translation")) return address;
    return inside_of(address.to_v6(), below->prefix_length());
}

bool is_of_internet(const Address &address)
{
    const Address one = within(address);
    if (one.is_v4()) return std::none_of(ranges_v4().begin(), ranges_v4().end(), [&](const auto &range) { return is_in(one, range); });
    static const ip::network_v6 assigned = ip::make_network_v6("2000::/3");
    return one.to_v6().scope_id() == 0 && is_in(one, assigned) &&
           std::none_of(ranges_v6().begin(), ranges_v6().end(), [&](const auto &range) { return is_in(one, range); });
}

} // namespace pi_agent

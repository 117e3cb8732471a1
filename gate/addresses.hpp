// Which addresses a name may lead to without a rule that names them: those of the Internet, and no others.
#pragma once

#include "gate/host_text.hpp"

#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include <vector>

namespace pi_agent {

// Whether the range has the address. One of the other family is in none.
bool is_in(const Address &address, const boost::asio::ip::network_v4 &range);
bool is_in(const Address &address, const boost::asio::ip::network_v6 &range);

// What the address stands for where it has another one inside that a gateway or the kernel would reach: IPv4 in ::ffff:0:0/96 (mapped) and
// in 64:ff9b::/96 (NAT64). Otherwise itself.
Address within(const Address &address);

// Of a network that leads IPv6 to IPv4 by a prefix of its own (NAT64, RFC 6052): the prefixes that `known` has, the addresses of a name
// that has one of IPv4 alone (RFC 7050); and what an address below one of them has inside. Otherwise itself.
constexpr const char *translation_name = "ipv4only.arpa";
std::vector<boost::asio::ip::network_v6> translating_prefixes(const std::vector<Address> &known);
Address translated(const Address &address, const std::vector<boost::asio::ip::network_v6> &prefixes);

// Nothing that is reserved, on this host or in networks of its own: loopback, private, shared (CGNAT), link-local, unique-local,
// multicast, documentation, benchmarks, 6to4 and Teredo, and where clouds answer questions about a machine. Of IPv6 only what is assigned
// (2000::/3) is one of the Internet.
bool is_of_internet(const Address &address);

} // namespace pi_agent

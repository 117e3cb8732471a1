// Which addresses a name may lead to without a rule that names them: those of the Internet, and no others.
#pragma once

#include "gate/host_text.hpp"

#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace pi_agent {

// Whether the range has the address. One of the other family is in none.
bool is_in(const Address &address, const boost::asio::ip::network_v4 &range);
bool is_in(const Address &address, const boost::asio::ip::network_v6 &range);

// What the address stands for where it has another one inside that a gateway or the kernel would reach: IPv4 in ::ffff:0:0/96 (mapped) and
// in 64:ff9b::/96 (NAT64). Otherwise itself.
Address within(const Address &address);

// Not this host, no network of its own, and nothing that is reserved: loopback, private, shared (CGNAT), link-local, unique-local,
// multicast, documentation, benchmarks, 6to4 and Teredo, and where clouds answer questions about a machine. Of IPv6 only what is assigned
// (2000::/3) is one of the Internet.
bool is_of_internet(const Address &address);

} // namespace pi_agent

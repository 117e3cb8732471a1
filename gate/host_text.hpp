// Hosts as somebody wrote them, in one form: a rule, a request, a ClientHello and a question to the name server mean the same by it.
#pragma once

#include <utility> // for Boost.Asio 1.74, which forgets it

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

using Address = boost::asio::ip::address;

struct Host {
    std::string text;                    // a name in lower case without a dot at its end, or an address as the kernel writes it
    std::optional<Address> address = {}; // where it is one; IPv4 inside of IPv6 (::ffff:0:0/96) is IPv4, and none has a zone
};

// By read_one_host() (common/policy/host_rule.hpp). Addresses of IPv6 may have brackets; none has a zone.
std::optional<Host> read_host(std::string_view text);
Host to_host(const Address &address);

struct Target {
    Host host = {};
    std::uint16_t port = 0;
};

// "HOST:PORT"; HOST alone where there is a usual port (0: there is none).
std::optional<Target> read_target(std::string_view text, std::uint16_t usual_port);

// This host, as a session calls the host outside: "localhost", or an address of its loopback.
bool is_loopback(const Host &host) noexcept;

} // namespace pi_agent

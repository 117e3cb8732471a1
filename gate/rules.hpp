// Hosts in one form, what the policy lets a session connect to, and where the addresses lead that names stand for.
#pragma once

#include "runner/wire/gate_messages.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace pi_agent {

// Hosts as somebody wrote them, in one form: a rule, a request, a ClientHello and a question to the name server mean the same by it.

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

// What a session asks for, compared with all rules.
struct RuleAnswer {
    const GateRule *rule = nullptr;   // that allows it
    const GateRule *almost = nullptr; // where none does: that would, at another port
};

class GateRules {
public:
    // Throws Failure for a rule that is none: a rule that can never hold must not be taken in silence.
    explicit GateRules(std::vector<GateRule> rules);

    // By the name, or by the address where somebody asks for one.
    [[nodiscard]] RuleAnswer find(const Host &host, std::uint16_t port) const;

    // Whether a name that leads to this address may be connected to: it is one of the Internet, or a rule names it by itself or by a range
    // with that port. So a rule for a name never opens what its owner points it at in the networks of this host. "localhost" is dialled
    // without asking anybody.
    [[nodiscard]] bool may_lead_to(const Address &address, std::uint16_t port) const;

private:
    std::vector<GateRule> written_; // each at the same place as what it means
    std::vector<HostRule> rules_;
};

// Which addresses a name may lead to without a rule that names them: those of the Internet, and no others.

// Of a network that leads IPv6 to IPv4 by a prefix of its own (NAT64, RFC 6052): the prefixes that `known` has, the addresses of a name
// that has one of IPv4 alone (RFC 7050); and what an address below one of them has inside. Otherwise itself.
constexpr const char *translation_name = "ipv4only.arpa";
std::vector<boost::asio::ip::network_v6> translating_prefixes(const std::vector<Address> &known);
Address translated(const Address &address, const std::vector<boost::asio::ip::network_v6> &prefixes);

// Nothing that is reserved, on this host or in networks of its own: loopback, private, shared (CGNAT), link-local, unique-local,
// multicast, documentation, benchmarks, 6to4 and Teredo, and where clouds answer questions about a machine. Of IPv6 only what is assigned
// (2000::/3) is one of the Internet.
bool is_of_internet(const Address &address);

// Where the kernel sends what goes to an address: to this host itself, to a neighbour, or away by a gateway.
enum class Place {
    here, // this host has the address, or nobody can say where it is
    near, // on a network of this host's own: no gateway is between
    away, // by a gateway, or out of a device that leads to more than any one network has (PPP, a tunnel); or nothing leads there
};

// The kernel is asked each time: addresses and routes change while a session runs. Asks by a socket that is opened once, because the gate
// opens no such socket later (runner/filter/call_rules.cpp), and has none left when a session uses up its descriptors.
class HostRoutes {
public:
    // Throws SystemFailure.
    HostRoutes();
    [[nodiscard]] Place place_of(const Address &address);

private:
    struct Answer {
        int problem = 0; // errno, instead of a route
        unsigned char type = 0, bits = 0;
        bool has_gateway = false;
    };
    Answer ask(const Address &address, unsigned flags);

    UniqueFd netlink_;
    std::uint32_t question_ = 0;
};

// --- What the runner sends at the start (runner/wire/gate_messages.hpp).

GateOrder receive_gate_order(FdRef channel, Deadline deadline);
ReceivedListener receive_gate_listener(FdRef channel, Deadline deadline);

} // namespace pi_agent

// The name server of a session: it gives each name an address that stands for it, and asks no other server.
#pragma once

#include "gate/rules.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <deque>
#include <memory>
#include <unordered_map>

namespace pi_agent {

// The address that stands for a name inside a session: what the name server of the gate answers, and what a connection is known by.

// One address of IPv4 (198.18.0.0/15) and one of IPv6 (its last four bytes are those of IPv4) for each name, the same as long as the gate
// remembers it. It remembers the last `name_table_limit` names: an address is given to another name after 131,000 others at the earliest.
constexpr std::size_t name_table_limit = 8192;

struct NameAddresses {
    boost::asio::ip::address_v4 v4;
    boost::asio::ip::address_v6 v6;
};

class NameTable {
public:
    // `name` as read_host() returns it.
    NameAddresses addresses_of(const std::string &name);
    // The name that an address stands for; empty if it is none of these, or forgotten.
    [[nodiscard]] std::string name_of(const Address &address) const;
    // Whether it is one that the table hands out, remembered or not.
    static bool is_synthetic(const Address &address);

private:
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::unordered_map<std::uint32_t, std::string> names_;
    std::deque<std::uint32_t> order_; // the oldest first
    std::uint32_t next_ = 1;          // not 198.18.0.0 itself
};

// Questions to the gate's name server, and its answers (RFC 1035). Nothing is ever forwarded: what is not here, nobody is asked.

constexpr std::size_t dns_message_limit = 1232; // bytes of a question over UDP or TCP; larger ones are dropped

// The answer to a question; empty for what is none, or malformed. Each well-formed name has an address (A; AAAA where the session has
// IPv6), "localhost" its own, and nothing has anything else: so no HTTPS record turns a client to another name or an encrypted one.
std::string answer_dns(std::string_view question, NameTable &names, bool has_v6);

// The name server of a session: it gives each name an address that stands for it, and asks nobody.
struct Gate;

// Over UDP, for as long as the loop runs. Questions beyond a thousand a second are dropped.
void serve_names(Gate &gate, boost::asio::ip::udp::socket socket);

// Over TCP: one connection.
void visit_name_server(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

} // namespace pi_agent

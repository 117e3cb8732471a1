// The address that stands for a name inside a session: what the name server of the gate answers, and what a connection is known by.
#pragma once

#include "gate/host_text.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

namespace pi_agent {

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

} // namespace pi_agent

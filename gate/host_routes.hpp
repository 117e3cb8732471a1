// Where the kernel sends what goes to an address: to this host itself, to a neighbour, or away by a gateway.
#pragma once

#include "common/base/fd.hpp"
#include "gate/host_text.hpp"

#include <cstdint>

namespace pi_agent {

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
    Answer receive();

    UniqueFd netlink_;
    std::uint32_t question_ = 0;
};

} // namespace pi_agent

// What a session's network lets it reach, as root writes it into the session's view, and pi-agent-why reads it there.
#pragma once

#include "common/policy/rules.hpp"

namespace pi_agent {

constexpr const char *network_file = "run/pi-agent/network"; // there where the session has hosts by name
constexpr const char *denials_file = "run/pi-agent/denials"; // a denial a line, oldest first
constexpr std::size_t denials_file_limit = 64UL * 1024;      // bytes

struct SessionHosts {
    NetworkPolicy network; // of the mode `hosts`
    std::vector<ProviderRule> providers = {};
};

// A line for each, with the place that says it in a form for people:
//   network PLACE
//   host HOST:PORT PLACE
//   grant HOST:PORT PLACE      its user may add it
//   provider NAME HOST PLACE
std::string encode(const SessionHosts &hosts);

} // namespace pi_agent

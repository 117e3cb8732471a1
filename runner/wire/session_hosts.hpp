// What a session's network lets it reach, as root writes it into the session's view, and pi-agent-why reads it there.
#pragma once

#include "common/policy/policy.hpp"

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
inline std::string encode(const SessionHosts &hosts)
{
    const auto line_of = [](const std::string &words, const Position &where) {
        return words + " " + escape_for_display(to_string(where)) + "\n";
    };
    std::string text = line_of("network", hosts.network.where);
    for (const auto &rule : hosts.network.hosts)
        text += line_of("host " + host_and_port(rule.host, rule.port), rule.where);
    for (const auto &rule : hosts.network.may_grant)
        text += line_of("grant " + host_and_port(rule.host, rule.port), rule.where);
    for (const auto &provider : hosts.providers)
        text += line_of("provider " + provider.name + " " + provider.host, provider.where);
    return text;
}

} // namespace pi_agent

// Writing what a session's network lets it reach.
#include "runner/wire/session_hosts.hpp"

#include "common/base/text.hpp"

namespace pi_agent {

namespace {

std::string line_of(const std::string &words, const Position &where)
{
    return words + " " + escape_for_display(to_string(where)) + "\n";
}

} // namespace

std::string encode(const SessionHosts &hosts)
{
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

// Writing and reading what a session's network lets it reach.
#include "runner/wire/session_hosts.hpp"

namespace pi_agent {

namespace {

std::string line_of(const std::string &words, const Position &where)
{
    return words + " " + escape_for_display(to_string(where)) + "\n";
}

[[noreturn]] void refuse(std::string_view line)
{
    throw Failure(ExitStatus::internal, "the session's list of hosts has a line of an unknown form: " + escape_for_display(line));
}

std::string take_word(std::string_view &rest, std::string_view line)
{
    const auto space = rest.find(' ');
    if (space == std::string_view::npos) refuse(line);
    std::string word(rest.substr(0, space));
    rest.remove_prefix(space + 1);
    return word;
}

HostRule take_rule(std::string_view &rest, std::string_view line)
{
    const std::string text = take_word(rest, line);
    auto parsed = parse_host_rule(text);
    auto *rule = std::get_if<HostRule>(&parsed);
    if (rule == nullptr || host_and_port(rule->host, rule->port) != text) refuse(line);
    rule->where = {std::string(rest)};
    return std::move(*rule);
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

SessionHosts decode_session_hosts(std::string_view text)
{
    SessionHosts hosts{{NetworkMode::hosts, {}, {}}};
    for (const auto line : split(text, '\n')) {
        std::string_view rest = line;
        const std::string kind = take_word(rest, line);
        if (kind == "network")
            hosts.network.where = {std::string(rest)};
        else if (kind == "host")
            hosts.network.hosts.push_back(take_rule(rest, line));
        else if (kind == "grant")
            hosts.network.may_grant.push_back(take_rule(rest, line));
        else if (kind == "provider") {
            const std::string name = take_word(rest, line);
            const std::string host = take_word(rest, line);
            hosts.providers.push_back({name, {}, host, {std::string(rest)}});
        } else
            refuse(line);
    }
    return hosts;
}

} // namespace pi_agent

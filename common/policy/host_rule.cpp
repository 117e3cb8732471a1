// Reading rules by name, strictly.
#include "common/policy/host_rule.hpp"

#include "common/base/text.hpp"
#include "common/policy/ip_range.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <sys/socket.h>

namespace pi_agent {

namespace {

constexpr std::size_t name_limit = 253; // of the domain name system
constexpr std::size_t label_limit = 63;
const char *const rule_form = "write a name or an address, with a port unless it is 443: github.com, \"*.example.org\", localhost:5432";

struct Parts {
    std::string host;
    std::optional<std::string> port;
};

// At the last colon. One with more colons is IPv6, which has brackets if a port follows.
std::optional<Parts> parts_of(const std::string &text)
{
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string::npos) return std::nullopt;
        const auto rest = text.substr(end + 1);
        if (!rest.empty() && rest.front() != ':') return std::nullopt;
        if (text.find(':') > end) return std::nullopt; // brackets around no IPv6
        return Parts{text.substr(1, end - 1), rest.empty() ? std::nullopt : std::optional(rest.substr(1))};
    }
    const auto colon = text.find(':');
    if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) return Parts{text, std::nullopt};
    return Parts{text.substr(0, colon), text.substr(colon + 1)};
}

std::optional<IpRange> address_of(const std::string &host)
{
    if (host.find('/') != std::string::npos) {
        auto range = parse_ip_range(host);
        return std::holds_alternative<IpRange>(range) ? std::optional(std::get<IpRange>(std::move(range))) : std::nullopt;
    }
    std::vector<std::uint8_t> bytes(host.find(':') == std::string::npos ? 4 : 16);
    if (inet_pton(bytes.size() == 4 ? AF_INET : AF_INET6, host.c_str(), bytes.data()) != 1) return std::nullopt;
    const auto bits = static_cast<unsigned>(bytes.size() * 8);
    return IpRange{std::move(bytes), bits};
}

bool holds(const IpRange &range, const IpRange &other)
{
    return range.prefix <= other.prefix && overlap(range, other);
}

bool is_in(const IpRange &address, const char *range)
{
    return holds(std::get<IpRange>(parse_ip_range(range)), address);
}

// 64:ff9b::/96: IPv4 as gateways to it write it (NAT64).
bool is_translated(const IpRange &address)
{
    return address.is_v6() && is_in(address, "64:ff9b::/96");
}

// What it stands for, as the gate has it (gate/addresses.cpp).
IpRange within(IpRange address)
{
    if (!is_translated(address)) return address;
    return {{address.address.end() - 4, address.address.end()}, address.prefix - 96};
}

// Where no connection ever goes.
std::optional<HostProblem> problem_of_address(const IpRange &address)
{
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (address.is_v6() && std::equal(mapped.begin(), mapped.end(), address.address.begin()))
        return HostProblem{"is IPv4 in the form of IPv6", "write it as IPv4"};
    const std::string never = "is an address that leads to no host";
    if (is_in(address, "0.0.0.0/8") || is_in(address, "::/128")) return HostProblem{never, "name the host itself, e.g. localhost"};
    if (is_in(address, "224.0.0.0/3") || is_in(address, "ff00::/8")) return HostProblem{never, "name a host, not a group of them"};
    if (is_in(address, "198.18.0.0/15"))
        return HostProblem{"is one of the addresses that stand for names inside a session", "name the host"};
    if (is_in(address, "fe80::/10"))
        return HostProblem{"needs an interface, which a rule cannot name", "name another address of that host"};
    return std::nullopt;
}

// Ranges that mean less than they say, or more.
std::optional<HostProblem> problem_of_range(const IpRange &range)
{
    if (is_translated(range) && range.prefix < 128)
        return HostProblem{"is IPv4 in the form of IPv6 (NAT64)", "write the range as IPv4, which means both forms"};
    const auto ranges = loopback_ranges();
    const bool has_loopback = std::any_of(
        ranges.begin(), ranges.end(), [&](const IpRange &loopback) { return range.prefix < loopback.prefix && overlap(range, loopback); });
    if (has_loopback)
        return HostProblem{"has this host's own loopback in it, where services trust whoever asks",
                           "name smaller ranges, and what sessions need of the loopback by itself, e.g. localhost:5432"};
    return std::nullopt;
}

// inet_aton(3), which getaddrinfo(3) asks first, takes a name that ends in one for an address.
bool stands_for_number(std::string_view label)
{
    constexpr std::string_view digits = "0123456789abcdef";
    return label.starts_with("0x") ? label.find_first_not_of(digits, 2) == std::string_view::npos
                                   : label.find_first_not_of(digits.substr(0, 10)) == std::string_view::npos;
}

bool is_host_label(std::string_view label)
{
    const auto is_edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    return !label.empty() && label.size() <= label_limit && is_made_of(label, "_-") && is_edge(label.front()) && is_edge(label.back());
}

std::optional<HostProblem> problem_of_name(std::string_view name, bool has_wildcard)
{
    const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!is_ascii) return HostProblem{"has letters beyond ASCII", "write the name as name servers have it, which begins with xn--"};
    if (name.ends_with('.')) return HostProblem{"ends with a dot", "write it without"};
    if (name.find('*') != std::string_view::npos)
        return HostProblem{"has a '*' that is not its whole first part", "write \"*.example.org\" for all names below example.org"};
    const auto labels = split(name, '.');
    if (labels.empty() || name.size() > name_limit || !std::all_of(labels.begin(), labels.end(), is_host_label))
        return HostProblem{"is not the name of a host", rule_form};
    if (stands_for_number(labels.back()))
        return HostProblem{"is neither a name nor a whole address", "write an address in full, e.g. 10.20.0.5"};
    if (has_wildcard && name == "localhost") return HostProblem{"has no names below it", "write localhost"};
    return std::nullopt;
}

// What looks like a rule of another kind.
std::optional<HostProblem> problem_of_form(const std::string &text)
{
    if (const auto scheme = text.find("://"); scheme != std::string::npos) {
        auto host = text.substr(scheme + 3);
        host = host.substr(0, host.find('/'));
        const bool is_plain = text.starts_with("http://") && (host.find(':') == std::string::npos || host.ends_with(']'));
        return HostProblem{"is a URL", fmt::format("name the host alone: {}{}", escape_for_display(host), is_plain ? ":80" : "")};
    }
    if (text == "*" || text.starts_with("*:")) return HostProblem{"is every host", "say 'network: full' for no restriction"};
    return std::nullopt;
}

std::optional<std::uint16_t> parse_port(const std::string &text)
{
    const auto port = text.starts_with('0') ? std::nullopt : to_number<std::uint16_t>(text);
    return port;
}

std::string in_lower_case(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

} // namespace

std::variant<HostRule, HostProblem> parse_host_rule(const std::string &text)
{
    if (auto problem = problem_of_form(text)) return *problem;
    const auto parts = parts_of(text);
    if (!parts || text.find('\0') != std::string::npos) return HostProblem{"is not a host with a port", rule_form};
    HostRule rule{in_lower_case(parts->host)};
    if (parts->port) {
        const auto port = parse_port(*parts->port);
        if (!port) return HostProblem{"has a port that is not a number from 1 to 65535", rule_form};
        rule.port = *port;
    }
    if (const auto address = address_of(rule.host)) {
        if (auto problem = problem_of_address(*address)) return *problem;
        if (auto problem = problem_of_range(*address)) return *problem;
        const auto canonical = to_string(*address);
        rule.host = address->prefix < address->address.size() * 8 ? canonical : canonical.substr(0, canonical.find('/'));
        return rule;
    }
    if (const auto slash = rule.host.find('/'); slash != std::string::npos) {
        if (!address_of(rule.host.substr(0, slash))) return HostProblem{"has a path", "name the host alone"};
        const auto problem = std::get<RangeProblem>(parse_ip_range(rule.host));
        return HostProblem{problem.text, problem.remedy};
    }
    const bool has_wildcard = is_wildcard(rule);
    if (auto problem = problem_of_name(std::string_view(rule.host).substr(has_wildcard ? 2 : 0), has_wildcard)) return *problem;
    return rule;
}

std::string to_string(const HostRule &rule)
{
    return rule.port == https_port ? rule.host : host_and_port(rule.host, rule.port);
}

bool covers(const HostRule &rule, const HostRule &other)
{
    if (rule.port != other.port) return false;
    if (rule.host == "localhost") return is_loopback(other); // as the gate has it
    const auto addresses = address_of(rule.host);
    const auto asked = address_of(other.host);
    const bool is_range = rule.host.find('/') != std::string::npos;
    if (addresses && asked && !is_range) return holds(*addresses, *asked) || holds(*addresses, within(*asked));
    if (addresses || asked) return addresses && asked && holds(*addresses, within(*asked)) && !is_metadata(other);
    if (!is_wildcard(rule)) return rule.host == other.host;
    // "*.example.org" covers itself, "*.a.example.org" and "a.example.org", and not "example.org".
    const auto ending = std::string_view(rule.host).substr(1);
    return rule.host == other.host || (other.host.size() > ending.size() && other.host.ends_with(ending));
}

const HostRule *rule_for(const std::vector<HostRule> &rules, const HostRule &other)
{
    const auto found = std::find_if(rules.begin(), rules.end(), [&](const HostRule &rule) { return covers(rule, other); });
    return found == rules.end() ? nullptr : &*found;
}

bool is_metadata(const HostRule &rule)
{
    const auto address = address_of(rule.host);
    return address && std::any_of(std::begin(metadata_addresses), std::end(metadata_addresses), [&](const char *text) {
               const auto one = within(*address);
               const auto metadata = address_of(text);
               return one.prefix == metadata->prefix && one.address == metadata->address;
           });
}

bool is_wildcard(const HostRule &rule) noexcept
{
    return rule.host.starts_with("*.");
}

bool is_address(const HostRule &rule)
{
    return address_of(rule.host).has_value();
}

bool is_loopback(const HostRule &rule)
{
    if (rule.host == "localhost" || rule.host.ends_with(".localhost")) return true;
    const auto address = address_of(rule.host);
    const auto ranges = loopback_ranges();
    return address && std::any_of(ranges.begin(), ranges.end(), [&](const IpRange &range) { return holds(range, *address); });
}

} // namespace pi_agent

// Reads rules by name and ranges of addresses strictly, and compares what a session asks for with them.
#include "common/policy/host_rule.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

namespace pi_agent {

namespace {

const char *const as_written = "write it like 10.0.0.0/8 or \"fd00::/8\"; names stand in {hosts: [...]}";

std::optional<std::vector<std::uint8_t>> parse_address(const std::string &text)
{
    std::vector<std::uint8_t> bytes(text.find(':') == std::string::npos ? 4 : 16);
    if (inet_pton(bytes.size() == 4 ? AF_INET : AF_INET6, text.c_str(), bytes.data()) != 1) return std::nullopt;
    return bytes;
}

// What systemd's own files may say in this place, and modes of the policy.
std::optional<TextProblem> problem_of_word(const std::string &text)
{
    if (text == "any" || text == "full") return TextProblem{"is not a range of addresses", "say 'network: full' for no restriction"};
    if (text == "loopback" || text == "none")
        return TextProblem{"is not a range of addresses", "say 'network: " + text + "', without a list"};
    if (text == "localhost") return TextProblem{"is not a range of addresses", "write 127.0.0.0/8 and \"::1/128\""};
    return std::nullopt;
}

// 1 to `bits`, as a number is written.
std::optional<unsigned> parse_prefix(const std::string &text, std::size_t bits)
{
    const auto prefix = to_number<unsigned>(text);
    return prefix && text.front() != '0' && *prefix <= bits ? prefix : std::nullopt;
}

std::vector<std::uint8_t> without_bits_beyond(std::vector<std::uint8_t> address, unsigned prefix)
{
    for (unsigned index = 0; index < address.size(); ++index) {
        const unsigned kept = std::min(8U, prefix - std::min(prefix, index * 8));
        address[index] &= static_cast<std::uint8_t>(0xFF00U >> kept);
    }
    return address;
}

using V6Prefix = std::array<std::uint8_t, 12>;
constexpr V6Prefix mapped_v4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};        // ::ffff:0:0/96: IPv4 as the kernel takes it
constexpr V6Prefix translated_v4{0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0}; // 64:ff9b::/96: as gateways to it write it (NAT64)

bool begins_with(const IpRange &address, const V6Prefix &prefix)
{
    return address.is_v6() && address.prefix >= prefix.size() * 8 && std::equal(prefix.begin(), prefix.end(), address.address.begin());
}

constexpr std::size_t name_limit = 253; // of the domain name system
constexpr std::size_t label_limit = 63;
const char *const rule_form = "write a name or an address, with a port unless it is 443: github.com, \"*.example.org\", localhost:5432";

std::optional<IpRange> address_of(const std::string &host)
{
    if (host.find('/') != std::string::npos) {
        auto range = parse_ip_range(host);
        return std::holds_alternative<IpRange>(range) ? std::optional(std::get<IpRange>(std::move(range))) : std::nullopt;
    }
    const auto bytes = parse_address(host);
    return bytes ? std::optional(IpRange{*bytes, static_cast<unsigned>(bytes->size() * 8)}) : std::nullopt;
}

bool holds(const IpRange &range, const IpRange &other)
{
    return range.prefix <= other.prefix && overlap(range, other);
}

bool is_in(const IpRange &address, const char *range)
{
    return holds(std::get<IpRange>(parse_ip_range(range)), address);
}

// IPv4 inside of IPv6, or the address itself.
IpRange within(const IpRange &address)
{
    if (!begins_with(address, mapped_v4) && !begins_with(address, translated_v4)) return address;
    return {{address.address.end() - 4, address.address.end()}, address.prefix - 96};
}

std::string without_prefix(const IpRange &address)
{
    const auto text = to_string(address);
    return text.substr(0, text.find('/'));
}

// Where no connection ever goes.
std::optional<TextProblem> problem_of_address(const IpRange &address)
{
    if (begins_with(address, mapped_v4)) return TextProblem{"is IPv4 in the form of IPv6", "write it as IPv4"};
    const std::string never = "is an address that leads to no host";
    if (is_in(address, "0.0.0.0/8") || is_in(address, "::/128")) return TextProblem{never, "name the host itself, e.g. localhost"};
    if (is_in(address, "224.0.0.0/3") || is_in(address, "ff00::/8")) return TextProblem{never, "name a host, not a group of them"};
    if (is_in(address, "198.18.0.0/15"))
        return TextProblem{"is one of the addresses that stand for names inside a session", "name the host"};
    if (is_in(address, "fe80::/10"))
        return TextProblem{"needs an interface, which a rule cannot name", "name another address of that host"};
    return std::nullopt;
}

// Ranges that mean less than they say, or more.
std::optional<TextProblem> problem_of_range(const IpRange &range)
{
    if (begins_with(range, translated_v4) && range.prefix < 128)
        return TextProblem{"is IPv4 in the form of IPv6 (NAT64)", "write the range as IPv4, which means both forms"};
    const auto ranges = loopback_ranges();
    const bool has_loopback = std::any_of(
        ranges.begin(), ranges.end(), [&](const IpRange &loopback) { return range.prefix < loopback.prefix && overlap(range, loopback); });
    if (has_loopback)
        return TextProblem{"has this host's own loopback in it, where services trust whoever asks",
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

bool is_label(std::string_view label)
{
    return !label.empty() && label.size() <= label_limit && is_made_of(label, "_-");
}

bool is_name(std::string_view name)
{
    const auto labels = split(name, '.');
    return !labels.empty() && !name.ends_with('.') && name.size() <= name_limit && std::all_of(labels.begin(), labels.end(), is_label);
}

std::optional<TextProblem> problem_of_name(std::string_view name, bool has_wildcard)
{
    const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!is_ascii) return TextProblem{"has letters beyond ASCII", "write the name as name servers have it, which begins with xn--"};
    if (name.ends_with('.')) return TextProblem{"ends with a dot", "write it without"};
    if (name.find('*') != std::string_view::npos)
        return TextProblem{"has a '*' that is not its whole first part", "write \"*.example.org\" for all names below example.org"};
    const auto labels = split(name, '.');
    const auto has_dash_at_end = [](std::string_view label) { return label.starts_with('-') || label.ends_with('-'); };
    if (!is_name(name) || std::any_of(labels.begin(), labels.end(), has_dash_at_end)) // some have such names, and a rule by mistake
        return TextProblem{"is not the name of a host", rule_form};
    if (stands_for_number(labels.back()))
        return TextProblem{"is neither a name nor a whole address", "write an address in full, e.g. 10.20.0.5"};
    if (has_wildcard && name == "localhost") return TextProblem{"has no names below it", "write localhost"};
    return std::nullopt;
}

// What looks like a rule of another kind.
std::optional<TextProblem> problem_of_form(const std::string &text)
{
    if (const auto scheme = text.find("://"); scheme != std::string::npos) {
        auto host = text.substr(scheme + 3);
        host = host.substr(0, host.find('/'));
        const bool is_plain = text.starts_with("http://") && (host.find(':') == std::string::npos || host.ends_with(']'));
        return TextProblem{"is a URL", "name the host alone: " + escape_for_display(host) + (is_plain ? ":80" : "")};
    }
    if (text == "*" || text.starts_with("*:")) return TextProblem{"is every host", "say 'network: full' for no restriction"};
    return std::nullopt;
}

// Whether everything that `other` names is named by `rule` too, whatever their ports.
bool names(const HostRule &rule, const HostRule &other)
{
    if (rule.host == "localhost") return is_loopback(other);
    const auto ruled = address_of(rule.host);
    const auto asked = address_of(other.host);
    const bool is_range = rule.host.find('/') != std::string::npos;
    if (ruled && asked && !is_range) return holds(*ruled, *asked) || holds(*ruled, within(*asked));
    if (ruled || asked) return ruled && asked && holds(*ruled, within(*asked)) && !is_metadata(other);
    if (!is_wildcard(rule)) return rule.host == other.host;
    // "*.example.org" covers itself, "*.a.example.org" and "a.example.org", and not "example.org".
    const auto ending = std::string_view(rule.host).substr(1);
    return rule.host == other.host || (other.host.size() > ending.size() && other.host.ends_with(ending));
}

} // namespace

std::variant<IpRange, TextProblem> parse_ip_range(const std::string &text)
{
    if (auto problem = problem_of_word(text)) return *problem;
    const auto slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    if (!address || text.find('\0') != std::string::npos) return TextProblem{"is not a range of IP addresses", as_written};
    const std::string bits = std::to_string(address->size() * 8);
    if (slash == std::string::npos) return TextProblem{"has no prefix length", "write " + text + "/" + bits + " for this one address"};
    const std::string length = text.substr(slash + 1);
    if (length == "0") return TextProblem{"is every address", "say 'network: full' for no restriction, or name smaller ranges"};
    const auto prefix = parse_prefix(length, address->size() * 8);
    if (!prefix) return TextProblem{"has a prefix length that is not a number from 1 to " + bits, as_written};
    IpRange range{without_bits_beyond(*address, *prefix), *prefix};
    if (range.address != *address)
        return TextProblem{"has bits beyond its prefix length",
                           "write " + to_string(range) + ", or " + text.substr(0, slash) + "/" + bits + " for this one address"};
    if (begins_with(range, mapped_v4)) return TextProblem{"is IPv4 in the form of IPv6, which matches nothing", "write it as IPv4"};
    return range;
}

std::string to_string(const IpRange &range)
{
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(range.is_v6() ? AF_INET6 : AF_INET, range.address.data(), text.data(), text.size());
    return text.data() + ("/" + std::to_string(range.prefix));
}

bool overlap(const IpRange &one, const IpRange &other)
{
    const unsigned common = std::min(one.prefix, other.prefix);
    return one.is_v6() == other.is_v6() && without_bits_beyond(one.address, common) == without_bits_beyond(other.address, common);
}

std::vector<IpRange> loopback_ranges()
{
    return {{{127, 0, 0, 0}, 8}, {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128}};
}

// Reading rules by name, strictly, and comparing what somebody asks for with them.

std::optional<HostParts> parts_of_host(const std::string &text)
{
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string::npos) return std::nullopt;
        const auto rest = text.substr(end + 1);
        if (!rest.empty() && rest.front() != ':') return std::nullopt;
        if (text.find(':') > end) return std::nullopt; // brackets around no IPv6
        return HostParts{text.substr(1, end - 1), rest.empty() ? std::nullopt : std::optional(rest.substr(1))};
    }
    const auto colon = text.find(':');
    if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) return HostParts{text, std::nullopt};
    return HostParts{text.substr(0, colon), text.substr(colon + 1)};
}

std::optional<std::uint16_t> parse_port(const std::string &text)
{
    return text.starts_with('0') ? std::nullopt : to_number<std::uint16_t>(text);
}

std::variant<HostRule, TextProblem> parse_host_rule(const std::string &text)
{
    if (auto problem = problem_of_form(text)) return *problem;
    const auto parts = parts_of_host(text);
    if (!parts || text.find('\0') != std::string::npos) return TextProblem{"is not a host with a port", rule_form};
    HostRule rule{lower_case(parts->host)};
    if (parts->port) {
        const auto port = parse_port(*parts->port);
        if (!port) return TextProblem{"has a port that is not a number from 1 to 65535", rule_form};
        rule.port = *port;
    }
    if (const auto address = address_of(rule.host)) {
        if (auto problem = problem_of_address(*address)) return *problem;
        if (auto problem = problem_of_range(*address)) return *problem;
        rule.host = address->prefix < address->address.size() * 8 ? to_string(*address) : without_prefix(*address);
        return rule;
    }
    if (const auto slash = rule.host.find('/'); slash != std::string::npos) {
        if (!address_of(rule.host.substr(0, slash))) return TextProblem{"has a path", "name the host alone"};
        return std::get<TextProblem>(parse_ip_range(rule.host));
    }
    const bool has_wildcard = is_wildcard(rule);
    if (auto problem = problem_of_name(std::string_view(rule.host).substr(has_wildcard ? 2 : 0), has_wildcard)) return *problem;
    return rule;
}

std::optional<std::string> read_one_host(std::string_view text)
{
    std::string host = lower_case(std::string(text));
    if (host.find_first_of(std::string_view("/\0", 2)) != std::string::npos) return std::nullopt;
    if (const auto address = address_of(host)) return without_prefix(begins_with(*address, mapped_v4) ? within(*address) : *address);
    if (host.ends_with('.')) host.pop_back();
    return is_name(host) && !stands_for_number(split(host, '.').back()) ? std::optional(std::move(host)) : std::nullopt;
}

std::variant<HostRule, TextProblem> parse_proxy(const std::string &text)
{
    constexpr const char *form = "write http://HOST:PORT, e.g. http://proxy.example.com:3128";
    constexpr std::string_view scheme = "http://";
    if (text.find('@') != std::string::npos)
        return TextProblem{"has a login in it, and everybody can read the policy",
                           "write NAME:PASSWORD into a file that only root can read, and name the file in via_login_file"};
    if (!text.starts_with(scheme)) return TextProblem{"is not the address of a proxy that takes plain HTTP", form};
    const std::string place = text.substr(scheme.size(), text.ends_with('/') ? text.size() - scheme.size() - 1 : text.npos);
    if (const auto parts = parts_of_host(place); !parts || !parts->port) return TextProblem{"names no port of a proxy", form};
    auto rule = parse_host_rule(place);
    const auto *proxy = std::get_if<HostRule>(&rule);
    if (proxy != nullptr && (is_wildcard(*proxy) || proxy->host.find('/') != std::string::npos))
        return TextProblem{"names more than one host", form};
    return rule;
}

std::string to_string(const HostRule &rule)
{
    return rule.port == https_port ? rule.host : host_and_port(rule.host, rule.port);
}

bool covers(const HostRule &rule, const HostRule &other)
{
    return rule.port == other.port && names(rule, other);
}

HostMatch find_rule(const std::vector<HostRule> &rules, const HostRule &asked)
{
    HostMatch match;
    for (const auto &rule : rules) {
        if (!names(rule, asked)) continue;
        if (rule.port == asked.port) return {&rule, nullptr};
        if (match.other_port == nullptr) match.other_port = &rule;
    }
    return match;
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

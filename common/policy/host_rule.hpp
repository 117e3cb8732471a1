// Hosts, ports and ranges of addresses that sessions may reach, written as "api.anthropic.com:443", "*.example.org" or "10.0.0.0/8"; and
// the providers of models.
#pragma once

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <variant>

namespace pi_agent {

// A range of IP addresses, written as "10.0.0.0/8" or "fd00::/8".
struct IpRange {
    std::vector<std::uint8_t> address; // 4 or 16 bytes, the first one first; no bit beyond the prefix
    unsigned prefix;
    [[nodiscard]] bool is_v6() const noexcept { return address.size() == 16; }
    friend bool operator==(const IpRange &, const IpRange &) = default;
};

// Strict: a single address also needs its prefix length, no bit is set beyond the prefix, and a range of every address is refused.
std::variant<IpRange, TextProblem> parse_ip_range(const std::string &text);

// As a policy writes it.
std::string to_string(const IpRange &range);

// Whether an address is in both.
bool overlap(const IpRange &one, const IpRange &other);

// 127.0.0.0/8 and ::1/128.
std::vector<IpRange> loopback_ranges();

// A rule by name: a host and a port that sessions may reach, written as "api.anthropic.com", "*.example.org" or "localhost:5432".

constexpr std::uint16_t https_port = 443; // of a rule that names no port

struct HostRule {
    std::string host; // in lower case: a name, "*." and a name for all below it, or an address or range as inet_ntop(3) writes it
    std::uint16_t port = https_port;
    Position where = {};
    friend bool operator==(const HostRule &, const HostRule &) = default;
};

// Where clouds give a host's own credentials to whoever asks, as inet_ntop(3) writes it. A range does not mean these: each needs a rule of
// its own.
inline constexpr const char *metadata_addresses[] = {
    "169.254.169.254", "169.254.169.253", "169.254.170.2",      "169.254.170.23",    "169.254.0.23",
    "169.254.42.42",   "100.100.100.200", "168.63.129.16",      "192.0.0.192",       "fd00:ec2::254",
    "fd00:ec2::23",    "fd20:ce::254",    "fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1", "fd00:42::42",
};
bool is_metadata(const HostRule &rule); // IPv4 also inside of IPv6

// Strict. Refuses what no connection could ever match: URLs, odd names, port 0, addresses that lead to no host.
std::variant<HostRule, TextProblem> parse_host_rule(const std::string &text);

// "http://HOST:PORT", a proxy.
std::variant<HostRule, TextProblem> parse_proxy(const std::string &text);

// As a policy writes it: without the port 443, and with brackets around IPv6 where a port follows.
std::string to_string(const HostRule &rule);

// One host as a session, or a person, names it, in the form of a rule: in lower case without a dot at its end, or an address as
// inet_ntop(3) writes it, without brackets; IPv4 inside of IPv6 (::ffff:0:0/96) is IPv4. None for anything else, and for what libraries
// would take for an address in an odd form ("0x7f.1", "2130706433", "127.1").
std::optional<std::string> read_one_host(std::string_view text);

// At the last colon. One with more colons is IPv6, which has brackets if a port follows.
struct HostParts {
    std::string host;
    std::optional<std::string> port;
};
std::optional<HostParts> parts_of_host(const std::string &text);
std::optional<std::uint16_t> parse_port(const std::string &text);

// Whether everything that `other` names is named by `rule` too, with the same port.
bool covers(const HostRule &rule, const HostRule &other);

// What somebody asks for, compared with all rules: by gate, policy and `why` alike.
struct HostMatch {
    const HostRule *rule = nullptr;       // the first that covers it
    const HostRule *other_port = nullptr; // where none does: the first that would at another port
};
HostMatch find_rule(const std::vector<HostRule> &rules, const HostRule &asked);

// The first that covers `other`, or nullptr.
inline const HostRule *rule_for(const std::vector<HostRule> &rules, const HostRule &other)
{
    return find_rule(rules, other).rule;
}

inline bool is_wildcard(const HostRule &rule) noexcept
{
    return rule.host.starts_with("*.");
}

// Whether its host is an address or a range of them, and not a name.
bool is_address(const HostRule &rule);

// Whether it leads to the host's own loopback alone, whatever a name server says: "localhost" and names below it, addresses of 127.0.0.0/8,
// or ::1.
bool is_loopback(const HostRule &rule);

// --- The providers of models whose keys a gate can hold: where they are, what may be asked of them, and how pi names them.

// What may be asked of a provider. A path that ends in "/" stands for all below it, any other for itself alone; a "*" in it is any text
// without "/". The method "WEBSOCKET" is a GET that becomes a WebSocket.
struct ProviderRequest {
    std::string_view method, path;
};

struct Provider {
    std::string_view name;              // as pi calls it, in models.json, auth.json and the policy
    std::string_view old_name = {};     // as pi called it before, where that differs: the policy may, and older agents know no other
    std::string_view host = {};         // where it is; empty: each customer has a host of its own, which the policy names
    std::string_view host_pattern = {}; // what a host that the policy names has to be like, "*" for one label; empty: none may be named
    std::string_view header;            // that its key goes into, in lower case
    std::string_view prefix = {};       // before the key
    std::string_view base_path = {};    // of the address that pi appends its requests to
    std::vector<ProviderRequest> requests;
    std::vector<std::string_view> variables; // that hold its key, or lead pi past the gate: no session with a gate's key has them
    std::vector<std::pair<std::string_view, std::string_view>> set = {}; // variables that pi needs instead
};

// What stands for a key in a session. pi asks no provider without a key.
constexpr std::string_view key_placeholder = "held-by-the-gate";

const std::vector<Provider> &providers_with_gate();
const Provider *find_provider(std::string_view name); // by either name; none: no gate can hold its key

// Providers, by the names that auth.json has for them, whose key pi (0.87 to 1.6) reads from this variable; with a gate or without.
std::vector<std::string> providers_of_key(std::string_view variable);
// The variable of such a provider; the first where it reads several.
std::optional<std::string> key_variable_of_provider(std::string_view provider);

// The host that its requests go to, or what is wrong with the one that the policy names; "" where it names none of its own.
struct ProviderHost {
    std::string host;
    std::optional<std::string> problem;
};
ProviderHost host_of_provider(const Provider &provider, std::string_view of_policy);

// How a key is sent, and what stands for it. One provider has two kinds of keys: a token of `claude setup-token` goes where a login's
// would, and pi has to know, because it then asks otherwise.
struct KeyForm {
    std::string_view header, prefix;
    std::string placeholder;
};
KeyForm form_of_key(const Provider &provider, std::string_view key);

} // namespace pi_agent

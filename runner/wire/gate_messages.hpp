// What the runner tells the gate of a session (gate/) and the session about it, and what the gate says back.
#pragma once

#include "common/base/channel.hpp"

#include "common/policy/policy.hpp"

namespace pi_agent {

constexpr std::size_t gate_rule_limit = 1000;
constexpr std::size_t gate_provider_limit = 32;
constexpr std::size_t gate_listener_limit = 512;
constexpr std::size_t gate_key_bytes = 8UL * 1024;
constexpr std::size_t gate_host_bytes = 253;              // of a name (RFC 1035); addresses are shorter
constexpr std::size_t gate_where_bytes = 512;             // "file:line"
constexpr std::size_t gate_authorities = 1024UL * 1024;   // bytes of certificates
constexpr std::uint64_t gate_idle_seconds_limit = 86'400; // a day

// What texts may hold: one line of ASCII; and names, addresses and ranges, nothing that means something to a shell, a terminal or HTTP.
bool is_printable(std::string_view text) noexcept;
bool is_host_alphabet(std::string_view text) noexcept;

// --- The order: one record (common/base/channel.hpp), before anything else. All of it comes from the policy, so the gate believes it. The
// gate's half is in gate/rules.cpp.

// What a session may connect to.
struct GateRule {
    std::string host; // in lower case: a name, "*.name" for what is below it, an address, a range "10.0.0.0/8", or "localhost"
    std::uint16_t port = 443;
    std::string where = {}; // "file:line" of the policy

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.host, gate_host_bytes, "a rule of the gate has a host that is too long");
        archive.require([&] { return is_host_text(self.host); }, "a rule of the gate has a host that cannot be one");
        archive.bounded(self.port, UINT16_MAX, "a rule of the gate has an impossible port");
        archive.require([&] { return self.port != 0; }, "a rule of the gate has an impossible port");
        archive.cut(self.where, gate_where_bytes, "a rule of the gate is at a place that is too long");
    }

private:
    static bool is_host_text(std::string_view host) noexcept;
};

// A service that the session asks by the reverse route: the gate adds the key.
struct GateProvider {
    std::string host;   // "api.openai.com"
    std::string header; // "authorization", "x-api-key", "x-goog-api-key", "api-key"
    std::string prefix; // "Bearer ", or nothing
    std::string key;    // printable bytes; forget_keys() after use
    // What may be asked of it: the method at one place of the first list with the path at the same place of the second
    // (common/policy/host_rule.hpp).
    std::vector<std::string> methods = {};
    std::vector<std::string> paths = {};
    std::string where = {};

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.host, gate_host_bytes, "a provider of the gate has a host that is too long");
        archive(self.header, self.prefix);
        archive.bounded(self.key, gate_key_bytes, "a provider of the gate has a key that is too long");
        archive.bounded(self.methods, 64);
        archive.bounded(self.paths, 64);
        archive.cut(self.where, gate_where_bytes, "a provider of the gate is at a place that is too long");
        archive.require([&] { return is_sound(self); }, "a provider of the gate is not as it has to be");
    }

private:
    static bool is_sound(const GateProvider &provider) noexcept;
};

struct GateOrder {
    std::vector<GateRule> rules = {};
    std::vector<GateProvider> providers = {};
    std::uint64_t idle_seconds = 600; // without a byte in either direction, a connection ends; pi itself waits for 300
    std::string session = {};         // its id, for messages
    std::uint64_t listeners = 0;      // how many packets with one follow
    std::string authorities = {};     // certificates (PEM) that a provider's may be signed by, besides those that the host trusts
    // One or none: a proxy, by which the gate reaches all hosts but these, and the proxy's login, "NAME:PASSWORD".
    std::vector<GateRule> via = {}, direct = {};
    std::string login = {};
    static constexpr std::uint64_t type = 40;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.rules, gate_rule_limit, "the gate's order has too many rules");
        archive.bounded(self.providers, gate_provider_limit, "the gate's order has too many providers");
        archive.bounded(self.idle_seconds, gate_idle_seconds_limit, "the gate's order has an impossible time");
        archive.require([&] { return self.idle_seconds != 0; }, "the gate's order has an impossible time");
        archive.bounded(self.session, 64, "the gate's order has a name that is too long");
        archive.bounded(self.listeners, gate_listener_limit, "the gate's order has too many listeners");
        archive.bounded(self.authorities, gate_authorities, "the gate's order has too many certificates");
        archive.bounded(self.via, 1, "the gate's order has more than one proxy");
        archive.bounded(self.direct, gate_rule_limit, "the gate's order has too many rules");
        archive.bounded(self.login, gate_key_bytes, "the gate's order has a login that is too long");
    }
};
static_assert(2 * gate_rule_limit * (gate_host_bytes + gate_where_bytes + 32) + (gate_provider_limit + 1) * (gate_key_bytes + 16'384) +
                  gate_authorities <
              record_limit);

// Overwrites the keys.
void forget_keys(GateOrder &order) noexcept;

// Leaves no copy of a key in this process' memory but the order's own.
void send_gate_order(FdRef channel, const GateOrder &order, Deadline deadline);

// --- The listeners: sockets that the runner made in the session's network namespace, one a packet. Whoever reaches one is in the session.
enum class ListenerKind : std::uint64_t {
    proxy,       // TCP, for HTTP_PROXY: CONNECT, and requests with a whole address
    reverse,     // TCP, for the route to providers
    transparent, // TCP, for what connects by itself: the connection's address inside says to whom
    dns_udp,
    dns_tcp,
};

struct GateListener {
    ListenerKind kind{};
    std::uint16_t port = 0; // its own
    static constexpr std::uint64_t type = 41;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.kind, ListenerKind::dns_tcp, "a listener of the gate is of an unknown kind");
        archive.bounded(self.port, UINT16_MAX, "a listener of the gate has an impossible port");
    }
};

struct ReceivedListener {
    GateListener about;
    UniqueFd socket;
};

void send_gate_listener(FdRef channel, const GateListener &about, FdRef socket, Deadline deadline);

// --- What the gate says, in packets of a pipe of its own (common/base/channel.hpp): first `ready`, then denials, and again and again
// that it is alive. It reads what the session sends, so root reads it as a hostile peer's.
struct GateReady {
    static constexpr std::uint64_t type = 42;
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};

// A process that is stopped, or hangs, ends nothing: so the gate says that it serves, and its silence says that it does not.
struct GateAlive {
    static constexpr std::uint64_t type = 44;
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};

// The last word of a gate whose session is over. The kernel closes descriptors of an ending process last: after its memory, its threads
// and its mounts; and systemd has copies of them.
struct GateFarewell {
    static constexpr std::uint64_t type = 45;
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};

constexpr auto gate_alive_interval = std::chrono::milliseconds(500);
constexpr auto gate_longest_silence = std::chrono::milliseconds(1800); // the user is told within two seconds

// By which way somebody came.
enum class DenialKind : std::uint64_t {
    tunnel,      // CONNECT at the proxy
    plain,       // a request with a whole address at the proxy
    transparent, // by itself: to an address, or to one that the gate's name server gave for a name
    route,       // a request at the reverse route
};

// Why: the rows of denials.toml, in their order.
enum class DenialReason : std::uint64_t {
#include "runner/denial_reasons.inc"
};

// What programs and people read of a reason.
struct DenialText {
    DenialReason reason{};
    const char *word = "";    // for programs
    const char *meaning = ""; // for people: what follows "HOST:PORT: "
    const char *key = "";     // the key of the policy that would change it; empty where none would
    bool is_refusal = true;   // or what was asked for does not exist, whatever the policy says
};

inline constexpr DenialText denial_texts[] = {
#include "runner/denials.inc"
};

const DenialText &text_of(DenialReason reason) noexcept;

struct GateDenial {
    DenialKind kind{};
    std::string host;
    std::uint16_t port = 0;
    DenialReason reason{};
    std::uint64_t count = 1;  // since the last of the same
    std::string where = {};   // of a rule or provider that almost fits; empty without one
    std::string address = {}; // that the name leads to, where the reason is about that
    static constexpr std::uint64_t type = 43;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.kind, DenialKind::route, "the gate told of a denial of an unknown kind");
        archive.cut(self.host, gate_host_bytes, "the gate told of a host that is too long");
        archive.bounded(self.port, UINT16_MAX, "the gate told of an impossible port");
        archive.bounded(self.reason, DenialReason::proxy_unreadable, "the gate told of a denial for an unknown reason");
        archive(self.count);
        archive.cut(self.where, gate_where_bytes, "the gate told of a place that is too long");
        archive.cut(self.address, gate_host_bytes, "the gate told of an address that is too long");
        archive.require([&] { return is_harmless(self); }, "the gate told of a denial in bytes that are not for people");
    }

private:
    static bool is_harmless(const GateDenial &denial) noexcept;
};
std::string meaning_of(const GateDenial &denial); // for people, with the address
static_assert(std::size(denial_texts) == static_cast<std::size_t>(DenialReason::proxy_unreadable) + 1);

using GateMessage = std::variant<GateReady, GateDenial, GateAlive, GateFarewell>;
GateMessage decode_gate_message(std::string_view bytes);

// --- What a session's network lets it reach, as root writes it into the session's view, and pi-agent-why reads it there.

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
//   via HOST:PORT PLACE        the proxy above the gate
//   direct HOST:443 PLACE      not by that proxy, at any port
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
    if (const auto &via = hosts.network.via) text += line_of("via " + host_and_port(via->host, via->port), via->where);
    for (const auto &rule : hosts.network.direct)
        text += line_of("direct " + host_and_port(rule.host, rule.port), rule.where);
    for (const auto &provider : hosts.providers)
        text += line_of("provider " + provider.name + " " + provider.host, provider.where);
    return text;
}

} // namespace pi_agent

// The gate of a session as data: its unit, its order, what its session is told of it, and how pi reaches the providers behind it.
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/wire/gate_messages.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// The gate of a session as data: its unit, its order without keys, and what its session is told of it.

// --- Where the gate is, seen from inside.

constexpr const char *loopback_v4 = "127.0.0.1";
constexpr const char *loopback_v6 = "::1";
// Below 1024, so that no server of the session's can have them. The same in all sessions: those of one agent share a home, and what is
// written there holds for all of them. None of the ports that browsers and node refuse (fetch.spec.whatwg.org, "bad port").
constexpr std::uint16_t gate_proxy_port = 808;
constexpr std::uint16_t gate_route_port = 809;
constexpr const char *name_server_inside = "127.0.0.53";
constexpr std::uint16_t name_server_port = 53;

// /etc/resolv.conf of the session.
std::string resolv_conf_inside();

// Names for which a host's own /etc/hosts has an address of the loopback, besides localhost.
std::vector<std::string> names_of_loopback(std::string_view hosts);

// /etc/hosts of the session. The host's own would give names addresses that no rule names, before anybody asks the gate. `names` lead to
// the session's own loopback.
std::string hosts_inside(const std::string &host_name, const std::vector<std::string> &names = {});

// Its names of the host itself alone; also without the host name.
std::string own_hosts(const std::string &host_name);

// What programs read that go through a proxy, except to servers of the session's own with these `names`; the others arrive at the gate as
// well. No layer of the environment may set them otherwise: nothing else leads out.
Environment gate_environment(const std::vector<std::string> &names = {});

// --- Its unit.

// What becomes its file system, a directory that holds at most the symlinks of a merged /usr, and the host's places that are mounted in it;
// and what the policy lets it have.
struct GateRoot {
    std::string directory;
    std::vector<std::string> shown;
    std::optional<std::uint64_t> cpu = {}; // percent of a processor, as the session has (limits.cpu)
};

// Places that it has, where the host has them: programs and libraries, names and certificates. systemd passes over a missing one.
std::vector<std::string> places_of_gate();

std::vector<UnitProperty> gate_properties(const std::string &session_id, Uid user, const SystemdFeatures &features, const GateRoot &root);

// --- Its order.

constexpr std::size_t host_port_limit = 200;
static_assert(2 * host_port_limit + 8 < gate_listener_limit); // two listeners for each, and the gate's own

// Places of the policy that a session's gate may name in denials, in letters that root takes back from it. A gate that the agent has taken
// over would name another, for people to read.
std::set<std::string> denial_places(const NetworkPolicy &network, const std::vector<ProviderRule> &providers);

// The policy's rules. Providers follow with their keys: to_gate_provider.
GateOrder plan_gate(const Policy &policy, const std::string &session_id);
// Takes over the key. Throws Failure(configuration) for a provider that no gate can hold the key of.
GateProvider to_gate_provider(const ProviderRule &rule, std::string key);
// Whether it is found inside by a program that connects by itself: of the loopback, at 127.0.0.1 or ::1. Other addresses of it, and names
// below "localhost", are reached by the proxy alone.
bool has_own_listener(const HostRule &rule);
// Ports of rules that have one. Throws Failure(configuration) for more than a session has listeners for.
std::vector<std::uint16_t> host_ports(const NetworkPolicy &network);

// --- What the agent reads in its view (runner/wire/gate_messages.hpp), and its user at the end.

// "HOST:PORT"; the gate denies some connections before it knows to whom they go.
std::string place_of_denial(const GateDenial &denial);
// "HOST:PORT: what was denied, and what would change it" with a line feed.
std::string denial_line(const GateDenial &denial);

struct DeniedPlaces {
    std::uint64_t connections = 0;
    std::map<std::string, std::uint64_t> places; // "HOST:PORT", a bounded number of them
};
// One line; empty where nothing was denied.
std::string denied_notice(const DeniedPlaces &denied);

// How pi reaches the providers whose keys the session's gate holds: what its models.json and its environment say of them.

// `placeholders`: what stands for each key, in the order of the rules; without them, what stands for most.
//
// Of a provider with two names, both have it: no version of pi minds an entry of a name that it does not know.
//
// pi 0.87 to 1.6 keeps its own models of a provider that models.json only gives another address, and asks none without a key. The host in
// the path is for pi itself, which looks at addresses to know what a provider understands.
nlohmann::json models_of_held_keys(const std::vector<ProviderRule> &rules, const std::vector<std::string> &placeholders,
                                   std::uint16_t route_port);

// Says which variables a session gets from no layer, and what it gets instead; the gate's own come later. By the policy as it holds in the
// root, whatever the start gives up: a session whose network leads to no gate has neither the keys nor a route.
//
// Variables with a key of a provider would give it away, and others would lead pi past the gate. pi 0.73 took such a key before the
// one of models.json. A proxy (which may have a password in its address) leads nowhere from a network of the session's own.
void hold_outside(EnvironmentInput &environment, const Policy &policy);

} // namespace pi_agent

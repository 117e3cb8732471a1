// The gate of a session as data, and how pi reaches the providers whose keys it holds.
#include "runner/plan/host_view.hpp"

#include "common/base/build_settings.hpp"

#include <csignal>
#include <sstream>

namespace pi_agent {

namespace {

constexpr std::uint64_t percent_usec = 10'000; // of a second
constexpr std::size_t places_in_notice = 4;

BindList binds_of(const GateRoot &root)
{
    BindList binds;
    for (const auto &path : root.shown)
        binds.binds.push_back({path, path, true, true});
    const std::string own = parent_of(build::gate_path);
    if (!is_within(own, "/usr") && !is_within(own, "/nix/store")) binds.binds.push_back({own, own, true, false});
    return binds;
}

std::string denial_place(const Position &where)
{
    std::string place = to_string(where).substr(0, gate_where_bytes);
    std::replace_if(
        place.begin(), place.end(), [](char one) { return one < ' ' || one > '~'; }, '?');
    return place;
}

// Names the proxy as well: a denial for its sake says which one that is.
std::string place_of_proxy(const HostRule &via)
{
    return denial_place({to_string(via.where) + ": http://" + host_and_port(via.host, via.port)});
}

// The rules are those of a policy that was read, so each has its provider in the table and a host that it may have.
template <typename Each>
void for_each_provider(const std::vector<ProviderRule> &rules, const Each &each)
{
    for (std::size_t index = 0; index < rules.size(); ++index)
        if (const Provider *provider = find_provider(rules[index].name)) each(index, *provider);
}

} // namespace

std::string resolv_conf_inside()
{
    return std::string("# The session's gate answers for every name.\nnameserver ") + name_server_inside +
           "\nsearch .\noptions edns0\n"; // else the host's domain would be added to names, and no rule names the result
}

std::vector<std::string> names_of_loopback(std::string_view hosts)
{
    constexpr std::size_t most = 100;
    std::vector<std::string> names;
    for (const auto line : split(hosts, '\n')) {
        std::istringstream words{std::string(line.substr(0, line.find('#')))};
        std::string address, word;
        words >> address;
        if (!address.starts_with("127.") && address != loopback_v6) continue;
        while (words >> word && names.size() < most)
            if (const auto name = read_one_host(word); name && !is_loopback(HostRule{*name}) && !is_address(HostRule{*name}))
                names.push_back(*name);
    }
    return names;
}

std::string own_hosts(const std::string &host_name)
{
    return std::string(loopback_v4) + " localhost\n" + loopback_v6 + " localhost ip6-localhost ip6-loopback\n" +
           (host_name.empty() ? "" : "127.0.1.1 " + host_name + "\n");
}

std::string hosts_inside(const std::string &host_name, const std::vector<std::string> &names)
{
    std::string text = "# The session's gate answers for every other name.\n" + own_hosts(host_name);
    for (const auto &name : names)
        if (name != host_name) text += std::string(loopback_v4) + " " + name + "\n";
    return text;
}

Environment gate_environment(const std::vector<std::string> &names)
{
    const std::string proxy = std::string("http://") + loopback_v4 + ":" + std::to_string(gate_proxy_port);
    // At 0.0.0.0 the kernel finds the loopback, too. Servers print it as their own address, and no rule can name it.
    std::string direct = std::string(loopback_v4) + ",localhost," + loopback_v6 + ",0.0.0.0";
    for (const auto &name : std::set<std::string>(names.begin(), names.end())) // /etc/hosts usually has the host's own, too
        direct += "," + name;
    // Without NODE_USE_ENV_PROXY: what node opens by itself arrives at the gate as well. With it, node 22 says at each start that this is
    // experimental, and what reads a program's standard error reads that; and node asks the gate for servers of the session at [::1].
    Environment variables;
    for (const char *name : {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})
        variables[name] = proxy;
    for (const char *name : {"NO_PROXY", "no_proxy"})
        variables[name] = direct;
    return variables;
}

std::vector<std::string> places_of_gate()
{
    return {
#include "runner/gate_places.inc"
    };
}

std::vector<UnitProperty> gate_properties(const std::string &session_id, Uid user, const SystemdFeatures &features, const GateRoot &root)
{
    const std::string scope = scope_name(session_id);
    std::vector<UnitProperty> properties = {
        // Lifetime: as the session's own unit has it (runner/plan/unit_properties.cpp). It also ends when its channel does.
        {"Slice", slice_name(user)},
        {"BindsTo", std::vector<std::string>{scope}},
        {"After", std::vector<std::string>{scope}},
        {"ExecStart", Command{{build::gate_path}}},
        {"RootDirectory", root.directory},
        {"BindReadOnlyPaths", binds_of(root)},
        {"TemporaryFileSystem", PairList{{{parent_of(policy_path), "ro"}}}}, // over the policy and its keys
#include "runner/unit_both.inc"
#include "runner/unit_gate.inc"
    };
    if (root.cpu) properties.push_back({"CPUQuotaPerSecUSec", *root.cpu * percent_usec});
    if (features.log_sockets) properties.push_back({"BindLogSockets", false});
    return properties;
}

std::set<std::string> denial_places(const NetworkPolicy &network, const std::vector<ProviderRule> &providers)
{
    std::set<std::string> places;
    for (const auto &rule : network.hosts)
        places.insert(denial_place(rule.where));
    if (network.via) places.insert(place_of_proxy(*network.via));
    for (const auto &provider : providers)
        places.insert(denial_place(provider.where));
    return places;
}

GateOrder plan_gate(const Policy &policy, const std::string &session_id)
{
    GateOrder order;
    order.session = session_id;
    for (const auto &rule : policy.network.hosts)
        order.rules.push_back({rule.host, rule.port, denial_place(rule.where)});
    if (const auto &via = policy.network.via) order.via.push_back({via->host, via->port, place_of_proxy(*via)});
    for (const auto &rule : policy.network.direct)
        order.direct.push_back({rule.host, rule.port, {}});
    return order;
}

GateProvider to_gate_provider(const ProviderRule &rule, std::string key)
{
    const Provider *known = find_provider(rule.name);
    if (known == nullptr) throw Failure(ExitStatus::configuration, to_string(rule.where) + ": no gate knows the provider " + rule.name);
    const ProviderHost host = host_of_provider(*known, rule.host);
    if (host.problem) throw Failure(ExitStatus::configuration, to_string(rule.where) + ": the provider " + rule.name + " " + *host.problem);
    const KeyForm form = form_of_key(*known, key);
    GateProvider provider{host.host, std::string(form.header), std::string(form.prefix), std::move(key), {}, {}, denial_place(rule.where)};
    for (const auto &request : known->requests) {
        provider.methods.emplace_back(request.method);
        provider.paths.emplace_back(request.path);
    }
    return provider;
}

bool has_own_listener(const HostRule &rule)
{
    return is_loopback(rule) && (covers(rule, HostRule{loopback_v4, rule.port}) || covers(rule, HostRule{loopback_v6, rule.port}));
}

std::vector<std::uint16_t> host_ports(const NetworkPolicy &network)
{
    std::vector<std::uint16_t> ports;
    for (const auto &rule : network.hosts)
        if (has_own_listener(rule) && std::find(ports.begin(), ports.end(), rule.port) == ports.end()) ports.push_back(rule.port);
    if (ports.size() > host_port_limit)
        throw Failure(ExitStatus::configuration, to_string(network.where) + ": network.hosts names " + std::to_string(ports.size()) +
                                                     " ports of this host's own loopback, and a session has " +
                                                     std::to_string(host_port_limit) + " at most; name fewer");
    return ports;
}

std::string place_of_denial(const GateDenial &denial)
{
    return denial.host.empty() ? "(any host)" : host_and_port(denial.host, denial.port);
}

std::string denial_line(const GateDenial &denial)
{
    const DenialText &reason = text_of(denial.reason);
    std::string line = place_of_denial(denial) + ": " + meaning_of(denial);
    if (*reason.key != '\0') line += std::string("; the administrator can change this with the policy's key ") + reason.key;
    return line + (denial.where.empty() ? "" : " (" + denial.where + ")") + "\n";
}

std::string denied_notice(const DeniedPlaces &denied)
{
    if (denied.connections == 0) return "";
    std::vector<std::pair<std::string, std::uint64_t>> places(denied.places.begin(), denied.places.end());
    std::stable_sort(places.begin(), places.end(), [](const auto &one, const auto &other) { return one.second > other.second; });
    std::string names;
    for (std::size_t index = 0; index < std::min(places.size(), places_in_notice); ++index)
        names += (index == 0 ? "" : ", ") + places[index].first +
                 (places[index].second > 1 ? " (" + std::to_string(places[index].second) + ")" : "");
    if (places.size() > places_in_notice) names += " and others";
    return "the policy's network denied " + std::to_string(denied.connections) +
           (denied.connections == 1 ? " connection: " : " connections: ") + names + "; why: pi-agentctl denials";
}

nlohmann::json models_of_held_keys(const std::vector<ProviderRule> &rules, const std::vector<std::string> &placeholders,
                                   std::uint16_t route_port)
{
    nlohmann::json models = nlohmann::json::object();
    for_each_provider(rules, [&](std::size_t index, const Provider &provider) {
        const std::string host = host_of_provider(provider, rules[index].host).host;
        for (const auto &name : {provider.name, provider.old_name})
            if (!name.empty())
                models["providers"][std::string(name)] = {
                    {"baseUrl", "http://127.0.0.1:" + std::to_string(route_port) + "/" + host + std::string(provider.base_path)},
                    {"apiKey", index < placeholders.size() ? placeholders[index] : std::string(key_placeholder)},
                };
    });
    return models;
}

void hold_outside(EnvironmentInput &environment, const Policy &policy)
{
    for_each_provider(policy.providers, [&](std::size_t, const Provider &provider) {
        environment.held_outside.insert(provider.variables.begin(), provider.variables.end());
        for (const auto &[name, value] : provider.set)
            environment.gate[std::string(name)] = value;
    });
    if (!has_own_network(policy.network.mode) || !defence_is_on("proxies-outside")) return;
    for (const auto &variable : gate_environment())
        environment.held_outside.insert(variable.first);
}

} // namespace pi_agent

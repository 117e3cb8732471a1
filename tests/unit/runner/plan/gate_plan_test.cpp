// The gate's unit, its order, and what is said of it: runner/plan/sandbox_plan.hpp
#include "runner/plan/host_view.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/text.hpp"
#include "runner/wire/answer.hpp"
#include "support/failure.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace gate_plan_test {

namespace {

const std::string id = "0123456789abcdef0123456789abcdef";

std::vector<UnitProperty> properties(const std::string &version = "252.39-1~deb12u1")
{
    return gate_properties(id, Uid(1000), systemd_features(version), {"/run/pi-agent/sessions/" + id + "/gate", places_of_gate()});
}

const PropertyValue *find(const std::vector<UnitProperty> &all, const std::string &name)
{
    const auto found = std::find_if(all.begin(), all.end(), [&](const UnitProperty &one) { return one.name == name; });
    return found == all.end() ? nullptr : &found->value;
}

template <typename Value>
Value value_of(const std::string &name)
{
    const auto all = properties();
    const PropertyValue *value = find(all, name);
    REQUIRE_MESSAGE(value != nullptr, name);
    REQUIRE_MESSAGE(std::holds_alternative<Value>(*value), name);
    return std::get<Value>(*value);
}

Policy policy_with(std::vector<HostRule> hosts)
{
    Policy policy;
    policy.network.mode = NetworkMode::hosts;
    policy.network.hosts = std::move(hosts);
    return policy;
}

GateDenial denial(const std::string &host, std::uint16_t port, DenialReason reason)
{
    GateDenial made;
    made.host = host;
    made.port = port;
    made.reason = reason;
    return made;
}

} // namespace

TEST_CASE("the gate's unit ends with the runner's scope and has no right")
{
    CHECK(value_of<std::vector<std::string>>("BindsTo") == std::vector<std::string>{scope_name(id)});
    CHECK(value_of<std::vector<std::string>>("After") == std::vector<std::string>{scope_name(id)});
    CHECK(value_of<SignedNumber>("KillSignal").value == 9);
    CHECK(value_of<std::string>("Slice") == "pi-agent-u1000.slice");
    for (const char *name : {"DynamicUser", "NoNewPrivileges", "PrivateTmp"})
        CHECK_MESSAGE(value_of<bool>(name), name);
    CHECK_FALSE(value_of<bool>("MountAPIVFS"));
    for (const char *name : {"CapabilityBoundingSet", "AmbientCapabilities", "LimitCORE", "MemorySwapMax"})
        CHECK_MESSAGE(value_of<std::uint64_t>(name) == 0, name);
    CHECK(find(properties(), "PrivateNetwork") == nullptr); // it connects for the session
    CHECK(value_of<Command>("ExecStart").arguments.size() == 1);
    CHECK(find(properties(), "Environment") == nullptr);
    CHECK(find(properties(), "BindLogSockets") == nullptr);
    const auto newer = properties("257.9-1~deb13u1");
    CHECK(find(newer, "BindLogSockets") != nullptr);
}

TEST_CASE("the gate has no more of the host than its session may, and a few lines of the journal")
{
    CHECK(value_of<std::uint64_t>("MemoryMax") == 268'435'456);
    CHECK(value_of<std::uint64_t>("LogRateLimitIntervalUSec") == 60'000'000);
    CHECK(value_of<std::uint32_t>("LogRateLimitBurst") == 20);
    CHECK(find(properties(), "CPUQuotaPerSecUSec") == nullptr);
    const auto limited = gate_properties(id, Uid(1000), systemd_features("252"), {"/gate", {}, 150});
    const auto *quota = find(limited, "CPUQuotaPerSecUSec");
    REQUIRE(quota != nullptr);
    CHECK(std::get<std::uint64_t>(*quota) == 1'500'000);
}

TEST_CASE("the gate sees programs, libraries and name services of the host, and nothing else")
{
    std::set<std::string> shown;
    for (const auto &bind : value_of<BindList>("BindReadOnlyPaths").binds) {
        CHECK(bind.read_only);
        CHECK(bind.source == bind.target);
        shown.insert(bind.target);
    }
    for (const char *hidden : {"/", "/home", "/root", "/run", "/var", "/var/lib", "/srv", "/tmp", "/mnt", "/run/dbus", "/run/systemd"})
        CHECK_MESSAGE(!shown.contains(hidden), hidden);
    for (const char *resolver : {"/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/netconfig", "/run/connman",
                                 "/mnt/wsl/resolv.conf"}) // where /etc/resolv.conf leads
        CHECK_MESSAGE(shown.contains(resolver), resolver);
    CHECK(shown.contains("/usr"));
    CHECK(shown.contains("/etc"));
    CHECK(shown.contains("/var/lib/ca-certificates")); // what /etc/ssl leads to, on some
    CHECK(value_of<PairList>("TemporaryFileSystem").entries.at(0).first == parent_of(policy_path));
    CHECK(value_of<std::string>("RootDirectory") == "/run/pi-agent/sessions/" + id + "/gate");
}

TEST_CASE("the order has the policy's rules, each with its place, and no key")
{
    const GateOrder order =
        plan_gate(policy_with({{"api.example.org", 443, {"p.yaml", 3, 5}}, {"*.example.net", 22, {"p.yaml", 4, 5}}}), id);
    REQUIRE(order.rules.size() == 2);
    CHECK(order.rules[0].host == "api.example.org");
    CHECK(order.rules[1].host == "*.example.net");
    CHECK(order.rules[1].port == 22);
    CHECK(order.rules[1].where == "p.yaml:4:5");
    CHECK(order.providers.empty());
    CHECK(order.session == id);
}

TEST_CASE("a rule in a file with any name is named in letters that root takes back, and so is a provider")
{
    const Policy policy = policy_with({{"api.example.org", 443, {"policy.d/b\xc3\xbc.yaml", 3, 5}}});
    const ProviderRule provider{"openai", {}, "", {std::string(2 * gate_where_bytes, 'p'), 4, 5}};
    const GateOrder order = plan_gate(policy, id);
    const auto places = denial_places(policy.network, {provider});
    CHECK(order.rules[0].where == "policy.d/b??.yaml:3:5");
    CHECK(places == std::set<std::string>{order.rules[0].where, to_gate_provider(provider, "k").where});
}

TEST_CASE("the proxy of the policy is in the order, and in the places that a denial may name, by its own name")
{
    Policy policy = policy_with({{"api.example.org", 443, {"p.yaml", 3, 5}}});
    policy.network.via = HostRule{"proxy.example", 3128, {"p.yaml", 4, 5}};
    policy.network.direct = {{"*.corp.example", 443, {"p.yaml", 5, 5}}};
    const GateOrder order = plan_gate(policy, id);
    REQUIRE((order.via.size() == 1 && order.direct.size() == 1));
    CHECK((order.via[0].host == "proxy.example" && order.via[0].port == 3128));
    CHECK(order.via[0].where == "p.yaml:4:5: http://proxy.example:3128");
    CHECK(denial_places(policy.network, {}).contains(order.via[0].where));
    CHECK(order.direct[0].host == "*.corp.example");
    CHECK(order.login.empty());
}

TEST_CASE("ports of the host's loopback are found inside at the same place")
{
    const NetworkPolicy network = policy_with({{"localhost", 5432},
                                               {"127.0.0.1", 5432},
                                               {"::1", 9},
                                               {"db.example.org", 7},
                                               {"10.0.0.1", 8},
                                               {"127.0.0.0/8", 10},
                                               {"127.0.0.2", 11},
                                               {"127.1.0.0/16", 12},
                                               {"app.localhost", 13}})
                                      .network;
    CHECK(host_ports(network) == std::vector<std::uint16_t>{5432, 9, 10});
    NetworkPolicy many = network;
    for (std::size_t index = many.hosts.size(); index < 2 * host_port_limit; ++index)
        many.hosts.push_back({"localhost", static_cast<std::uint16_t>(1000 + index)});
    const Caught refused = failure_of([&] { return host_ports(many).size(); });
    CHECK(has(refused.text, "and a session has 200 at most"));
}

TEST_CASE("a provider's key goes to its own host, in its own header")
{
    const GateProvider openai = to_gate_provider({"openai", {}, "", {}}, "sk-1");
    CHECK(openai.host == "api.openai.com");
    CHECK(openai.header == "authorization");
    CHECK(openai.prefix == "Bearer ");
    CHECK(openai.key == "sk-1");
    REQUIRE(openai.methods.size() == openai.paths.size());
    CHECK(openai.methods.front() + " " + openai.paths.front() == "POST /v1/responses");
    const Caught unknown = failure_of([] { return to_gate_provider({"nobody", {}, "", {}}, "k").host.size(); });
    CHECK(unknown.status == 78);
}

TEST_CASE("the environment leads to the gate, and what is of the session stays there")
{
    const Environment variables = gate_environment();
    for (const char *name : {"HTTP_PROXY", "https_proxy", "ALL_PROXY"})
        CHECK(variables.at(name) == "http://127.0.0.1:808");
    CHECK(variables.at("NO_PROXY") == variables.at("no_proxy"));
    CHECK(variables.at("no_proxy") == "127.0.0.1,localhost,::1,0.0.0.0"); // no brackets, which httpx takes for a URL with a port
    CHECK(!variables.contains("NODE_USE_ENV_PROXY"));
    CHECK(has(resolv_conf_inside(), "nameserver 127.0.0.53\n"));
    CHECK(has(hosts_inside("build-1"), "\n127.0.0.1 localhost\n"));
    CHECK(has(hosts_inside("build-1"), "\n127.0.1.1 build-1\n"));
    const std::vector<std::string> names =
        names_of_loopback("127.0.0.1 localhost App.test # x.test\n10.0.0.1 far\n::1\tsix.test ip6-loopback\n127.0.1.1 build-1\n"
                          "#127.0.0.1 no\n127.0.0.1 bad_?name 1.2.3.4");
    CHECK(names == std::vector<std::string>{"app.test", "six.test", "ip6-loopback", "build-1"});
    CHECK(has(hosts_inside("build-1", names), "\n127.0.0.1 app.test\n127.0.0.1 six.test\n"));
    CHECK(has(gate_environment(names).at("no_proxy"), ",0.0.0.0,app.test,"));
}

TEST_CASE("a denial is told with its place, its reason and what would change it")
{
    GateDenial near = denial("db.example.org", 5432, DenialReason::other_port);
    near.where = "p.yaml:7:9";
    CHECK(denial_line(near) ==
          "db.example.org:5432: a rule of the policy names this host, but not this port; the administrator can change this "
          "with the policy's key network.hosts (p.yaml:7:9)\n");
    CHECK(has(denial_line(denial("2001:db8::1", 443, DenialReason::no_name)), "[2001:db8::1]:443: "));
    CHECK(!has(denial_line(denial("a.example", 443, DenialReason::too_slow)), "administrator"));
    GateDenial hidden = denial("intranet.example.org", 443, DenialReason::private_address);
    hidden.address = "10.1.2.3";
    CHECK(has(denial_line(hidden),
              ": the name leads to a private address, or one of this host or its networks, and no rule names that address: "
              "10.1.2.3; the administrator can"));
}

TEST_CASE("the notice at the end is one line, with the places that were asked for most")
{
    CHECK(denied_notice({}).empty());
    CHECK(denied_notice({1, {{"a.example:443", 1}}}) ==
          "the policy's network denied 1 connection: a.example:443; why: pi-agentctl denials");
    const std::string many = denied_notice({40, {{"a:1", 1}, {"b:1", 9}, {"c:1", 2}, {"d:1", 3}, {"e:1", 25}}});
    CHECK(many == "the policy's network denied 40 connections: e:1 (25), b:1 (9), d:1 (3), c:1 (2) and others; why: pi-agentctl denials");
    CHECK(!has(many, "\n"));
}

} // namespace gate_plan_test

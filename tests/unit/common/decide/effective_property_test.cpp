// A start only narrows: whatever it asks, what it reaches is a part of what it would reach without asking.
#include "common/decide/decision.hpp"

#include "support/drawn.hpp"
#include "support/policy_text.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <iostream>
#include <optional>
#include <random>
#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace effective_property_test {

namespace {

class Draw {
public:
    explicit Draw(unsigned seed) : random_(seed) {}
    std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }
    bool coin() { return below(2) == 0; }
    template <typename List>
    auto one_of(const List &list)
    {
        return list[below(std::size(list))];
    }

private:
    std::mt19937 random_;
};

constexpr const char *ranges[] = {"127.0.0.0/8", "127.0.0.1/32", "127.0.1.0/24",   "'::1/128'", "10.0.0.0/8",
                                  "10.1.0.0/16", "10.1.2.3/32",  "192.168.0.0/16", "'fd00::/8'"};
constexpr const char *addresses[] = {"127.0.0.1/32", "127.0.1.7/32", "127.9.9.9/32", "::1/128",     "10.1.2.3/32",
                                     "10.1.9.9/32",  "10.9.9.9/32",  "8.8.8.8/32",   "fd00::1/128", "2001:db8::1/128"};

constexpr const char *rules[] = {"a.example",        "'*.a.example'", "'*.b.a.example'", "'a.example:80'", "localhost",
                                 "'localhost:5432'", "127.0.0.1",     "'[::1]:80'",      "10.1.2.3",       "10.1.0.0/16"};
constexpr const char *hosts[] = {"a.example", "b.a.example", "c.b.a.example", "a.example:80", "localhost",    "localhost:5432",
                                 "127.0.0.1", "[::1]:80",    "10.1.2.3",      "10.1.9.9",     "other.example"};

std::string rules_of(Draw &draw, std::size_t most)
{
    std::string list;
    for (auto count = draw.below(most + 1); count > 0; --count)
        list += (list.empty() ? "" : ", ") + std::string(draw.one_of(rules));
    return "[" + list + "]";
}

std::string network_of(Draw &draw)
{
    constexpr const char *modes[] = {"full", "loopback", "none"};
    if (draw.coin()) return fmt::format("{{hosts: {}, may_grant: {}}}", rules_of(draw, 4), rules_of(draw, 2));
    if (draw.coin()) return draw.one_of(modes);
    std::string list;
    for (auto count = draw.below(4) + 1; count > 0; --count)
        list += (list.empty() ? "" : ", ") + std::string(draw.one_of(ranges));
    return "[" + list + "]";
}

// What may stand at a level, each with the separator in front.
std::string level_of(Draw &draw, bool is_root)
{
    std::string text;
    if (draw.coin()) text += ", network: " + network_of(draw);
    std::string projects;
    const auto add = [&](const char *key, const char *value) {
        projects += (projects.empty() ? "" : ", ") + std::string(key) + ": " + value;
    };
    if (draw.coin()) add("scope", draw.coin() ? "root" : "project");
    if (draw.coin()) add("read_only", draw.coin() ? "true" : "false");
    if (projects.empty()) return text;
    return text + (is_root ? ", " + projects : ", projects: {" + projects + "}");
}

std::string policy_text(Draw &draw)
{
    const auto top = level_of(draw, false);
    return fmt::format("{{version: 1, agent: {{accounts: shared}}{}, users: {{'%daemon': {{roots: [/srv/d]{}}}, "
                       "alice: {{roots: [{{path: /srv/a{}}}, /srv/b]{}}}}}}}\n",
                       top, level_of(draw, false), level_of(draw, true), level_of(draw, false));
}

// One under which keys may stay outside.
std::string closed_network_of(Draw &draw)
{
    return draw.coin() ? "none" : fmt::format("{{hosts: {}}}", rules_of(draw, 3));
}

std::string providers_of(Draw &draw)
{
    std::string list;
    for (const char *name : {"anthropic", "google", "openai"})
        if (draw.coin()) list += fmt::format("{}{}: {{key_file: /etc/k{}}}", list.empty() ? "" : ", ", name, draw.below(2));
    return "{" + list + "}";
}

// The same of a policy.
std::string written(const std::vector<ProviderRule> &providers)
{
    std::string list;
    for (const auto &provider : providers)
        list += fmt::format("{}{}: {{key_file: {}}}", list.empty() ? "" : ", ", provider.name, provider.key_file.path);
    return "{" + list + "}";
}

HostRule rule(const std::string &text)
{
    return std::get<HostRule>(parse_host_rule(text));
}

// Everything that a session can do, by name.
std::set<std::string> reach_of(const Policy &policy)
{
    std::set<std::string> reach = {"read the repository"};
    if (policy.projects.shown() == ProjectScope::root) reach.insert("read the rest of the root");
    if (!policy.projects.read_only) reach.insert("write the repository");
    if (!policy.projects.read_only && policy.projects.shown() == ProjectScope::root) reach.insert("write the rest of the root");
    for (const char *address : addresses) {
        const auto one = std::get<IpRange>(parse_ip_range(address));
        const auto holds = [&](const IpRange &range) { return overlap(range, one); };
        const auto &network = policy.network;
        if (network.mode == NetworkMode::full || std::any_of(network.allowed.begin(), network.allowed.end(), holds)) reach.insert(address);
    }
    for (const char *host : hosts)
        if (policy.network.mode == NetworkMode::full || rule_for(policy.network.hosts, rule(host)) != nullptr)
            reach.insert("host " + std::string(host));
    return reach;
}

Policy policy_of_alice(const Policy &policy, Draw &draw)
{
    const Account alice{"alice", Uid(1000), Gid(1000), "/home/alice", draw.coin() ? std::vector<gid_t>{1} : std::vector<gid_t>{}};
    const auto access = std::get<AccessRules>(find_access_rules(policy, alice, "p.yaml"));
    return policy_in(policy_for(policy, access), access.roots.at(draw.below(2)).spec);
}

} // namespace

TEST_CASE("what a start reaches is a part of what it would reach without asking, or it is refused")
{
    const int count = 10000;
    const auto seed = seed_of_run();
    std::cout << "policies and starts drawn with PI_AGENT_SEED=" << seed << '\n';
    Draw draw(seed);
    int refused = 0;
    int narrower = 0;
    for (int number = 0; number < count; ++number) {
        const auto text = policy_text(draw);
        const auto policy = policy_of_alice(parse(text), draw);
        const Narrowing start{static_cast<LeftNetwork>(draw.below(3)), draw.coin(), draw.coin()};
        const auto before = reach_of(policy);
        try {
            const auto asked = narrowed(policy, start);
            const auto after = reach_of(asked);
            CHECK_MESSAGE(std::includes(before.begin(), before.end(), after.begin(), after.end()), "seed " << seed << ": " << text);
            CHECK_MESSAGE((!start.read_only || !after.contains("write the repository")), text);
            CHECK_MESSAGE((!start.project_only || !after.contains("read the rest of the root")), text);
            CHECK_MESSAGE((start.network != LeftNetwork::none || asked.network.mode == NetworkMode::none), text);
            CHECK_MESSAGE((start.network == LeftNetwork::all || !after.contains("8.8.8.8/32")), text);
            CHECK_MESSAGE((start.network == LeftNetwork::all || !after.contains("host a.example")), text);
            CHECK_MESSAGE((start.network == LeftNetwork::all || !after.contains("host 10.1.2.3")), text);
            CHECK_MESSAGE(reach_of(narrowed(asked, start)) == after, text); // asking twice changes nothing
            narrower += after.size() < before.size() ? 1 : 0;
        } catch (const Failure &failure) {
            CHECK_MESSAGE(failure.kind() == FailureKind::start_asks, text << failure.what());
            CHECK_MESSAGE(start.network == LeftNetwork::loopback, text);
            CHECK_MESSAGE((!before.contains("127.0.0.1/32") && !before.contains("127.0.1.7/32") && !before.contains("::1/128")), text);
            for (const char *host : {"localhost", "localhost:5432", "127.0.0.1", "[::1]:80"})
                CHECK_MESSAGE(!before.contains("host " + std::string(host)), text);
            ++refused;
        }
    }
    CHECK(refused > count / 100);
    CHECK(narrower > count / 4);
}

TEST_CASE("what a start adds is a part of what the policy lets its user add, or it is refused")
{
    const auto seed = seed_of_run();
    std::cout << "policies and additions drawn with PI_AGENT_SEED=" << seed << '\n';
    Draw draw(seed);
    int refused = 0;
    int wider = 0;
    for (int number = 0; number < 10000; ++number) {
        const auto text = policy_text(draw);
        const auto policy = policy_of_alice(parse(text), draw);
        std::vector<std::string> asked;
        for (auto count = draw.below(3); count > 0; --count)
            asked.emplace_back(draw.one_of(hosts));
        Policy most = policy; // with all that may be added
        if (policy.network.mode == NetworkMode::hosts)
            most.network.hosts.insert(most.network.hosts.end(), policy.network.may_grant.begin(), policy.network.may_grant.end());
        const auto before = reach_of(policy);
        const auto possible = reach_of(most);
        try {
            const auto after = reach_of(granted(policy, asked));
            CHECK_MESSAGE(std::includes(after.begin(), after.end(), before.begin(), before.end()), "seed " << seed << ": " << text);
            CHECK_MESSAGE(std::includes(possible.begin(), possible.end(), after.begin(), after.end()), "seed " << seed << ": " << text);
            for (const auto &host : asked)
                CHECK_MESSAGE(after.contains("host " + host), text);
            wider += after.size() > before.size() ? 1 : 0;
        } catch (const Failure &failure) {
            CHECK_MESSAGE(failure.kind() == FailureKind::start_asks, text << failure.what());
            const bool has_all =
                std::all_of(asked.begin(), asked.end(), [&](const auto &host) { return possible.contains("host " + host); });
            CHECK_MESSAGE((!has_all || policy.network.mode != NetworkMode::hosts), text);
            ++refused;
        }
    }
    CHECK(refused > 1000);
    CHECK(wider > 100);
}

TEST_CASE("a start has routes to the providers that its levels give, where a gate leads out, and their keys stay outside in every case")
{
    const auto seed = seed_of_run();
    std::cout << "policies with keys drawn with PI_AGENT_SEED=" << seed << '\n';
    Draw draw(seed);
    int with_routes = 0;
    for (int number = 0; number < 2000; ++number) {
        const auto top = providers_of(draw);
        const auto own = draw.coin() ? std::optional(providers_of(draw)) : std::nullopt;
        const auto text = fmt::format("{{version: 1, network: {}, providers: {}, "
                                      "users: {{alice: {{roots: [{{path: /srv/a, network: {}}}, /srv/b]{}}}}}}}\n",
                                      closed_network_of(draw), top, closed_network_of(draw), own ? ", providers: " + *own : "");
        const auto policy = policy_of_alice(parse(text), draw);
        const Narrowing start{static_cast<LeftNetwork>(draw.below(3)), draw.coin(), draw.coin()};
        try {
            const auto asked = narrowed(policy, start);
            const bool has_gate = asked.network.mode == NetworkMode::hosts && start.network == LeftNetwork::all;
            CHECK_MESSAGE(written(routed_providers(asked)) == (has_gate ? own.value_or(top) : "{}"), "seed " << seed << ": " << text);
            CHECK_MESSAGE(written(asked.providers) == own.value_or(top), "seed " << seed << ": " << text);
            with_routes += routed_providers(asked).empty() ? 0 : 1;
        } catch (const Failure &failure) {
            CHECK_MESSAGE(failure.kind() == FailureKind::start_asks, text << failure.what());
        }
    }
    CHECK(with_routes > 100);
}

TEST_CASE("a method that cannot filter addresses refuses a start that asks for it")
{
    const auto policy = parse("version: 1\nsandbox: {method: bwrap}\nusers: {alice: {roots: [/srv/a]}}\n");
    try {
        static_cast<void>(narrowed(policy, {LeftNetwork::loopback, false, false}));
        FAIL_CHECK("not refused");
    } catch (const Failure &failure) {
        CHECK(failure.kind() == FailureKind::network_not_enforced);
    }
    CHECK(narrowed(policy, {LeftNetwork::none, false, false}).network.mode == NetworkMode::none);
}

} // namespace effective_property_test

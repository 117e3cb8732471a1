// The keys `network` with hosts, and `providers`: common/policy/policy_sections.hpp
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_hosts_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

std::string texts_of(const std::vector<HostRule> &rules)
{
    std::string texts;
    for (const auto &rule : rules)
        texts += (texts.empty() ? "" : " ") + to_string(rule);
    return texts;
}

} // namespace

TEST_CASE("hosts are a closed network with exactly these, and nothing is granted unless the policy says it")
{
    const auto network = parse(head + "network: {hosts: [GitHub.com, '*.example.org', 'github.com:22', '10.20.0.5:8080']}\n").network;
    CHECK(network.mode == NetworkMode::hosts);
    CHECK(texts_of(network.hosts) == "github.com *.example.org github.com:22 10.20.0.5:8080");
    CHECK(network.may_grant.empty());
    CHECK(network.allowed.empty());
    CHECK(to_string(network.hosts[1].where) == "p.yaml:3:31");
    const auto granting = parse(head + "network: {may_grant: ['*.debian.org:80']}\n").network;
    CHECK(granting.mode == NetworkMode::hosts);
    CHECK((granting.hosts.empty() && texts_of(granting.may_grant) == "*.debian.org:80"));
    CHECK((has_own_network(NetworkMode::hosts) && has_own_network(NetworkMode::none) && !has_own_network(NetworkMode::loopback)));
}

TEST_CASE("what is wrong with a host is told with its place in the list and a remedy")
{
    CHECK(contains(problems_of(head + "network: {hosts: [a.example, 'https://b.example/v1']}\n"),
                   "p.yaml:3:30: network.hosts[1]: 'https://b.example/v1' is a URL; name the host alone: b.example"));
    CHECK(contains(problems_of(head + "network: {hosts: ['a.example:0']}\n"), "network.hosts[0]: 'a.example:0' has a port"));
    CHECK(contains(problems_of(head + "network: {may_grant: ['*']}\n"), "network.may_grant[0]: '*' is every host"));
    CHECK(contains(problems_of(head + "network: {hosts: a.example}\n"), "network.hosts: must be a list"));
    CHECK(contains(problems_of(head + "network: {hosts: [5]}\n"), "network.hosts[0]: must be text"));
    CHECK(contains(problems_of(head + "network: {}\n"), "network: is an empty mapping; say 'network: none'"));
    CHECK(contains(problems_of(head + "network: {host: [a.example]}\n"), "network.host: unknown key"));
    std::string many;
    for (int number = 0; number <= 1000; ++number)
        many += "h" + std::to_string(number) + ".example, ";
    CHECK(contains(problems_of(head + "network: {hosts: [" + many + "]}\n"),
                   "network.hosts: has 1001 rules, and a session has 1000 at most"));
}

TEST_CASE("a proxy above the gate is named with its login's file, and with what goes without it")
{
    const auto network =
        parse(head + "network: {hosts: [a.example], via: 'http://Proxy.example:3128/', direct: ['*.a.example', 10.0.0.0/8],\n"
                     "  via_login_file: /etc/pi-agent/proxy.login}\n")
            .network;
    REQUIRE(network.via);
    CHECK((network.via->host == "proxy.example" && network.via->port == 3128 && to_string(network.via->where) == "p.yaml:3:36"));
    CHECK(texts_of(network.direct) == "*.a.example 10.0.0.0/8");
    CHECK(network.via_login_file.path == "/etc/pi-agent/proxy.login");
    const auto six = parse(head + "network: {hosts: [a.example], via: 'http://[2001:db8::7]:8080'}\n").network;
    CHECK((six.via->host == "2001:db8::7" && six.via->port == 8080));
    CHECK_FALSE(parse(head + "network: {hosts: [a.example]}\n").network.via);
}

TEST_CASE("what cannot be a proxy above the gate is refused, and no login of it is shown")
{
    const auto problem = [](const std::string &more) { return problems_of(head + "network: {hosts: [a.example], " + more + "}\n"); };
    const auto login = problem("via: 'http://alice:secret@proxy.example:3128'");
    CHECK(contains(login, "network.via: has a login in it, and everybody can read the policy"));
    CHECK_FALSE(contains(login.substr(0, login.find('\n')), "secret"));
    for (const char *other : {"https://proxy.example:3128", "socks5://proxy.example:1080", "proxy.example:3128"})
        CHECK_MESSAGE(contains(problem("via: '" + std::string(other) + "'"), "is not the address of a proxy that takes plain HTTP"),
                      std::string(other));
    CHECK(contains(problem("via: 'http://proxy.example'"), "network.via: names no port of a proxy"));
    CHECK(contains(problem("via: 'http://*.example:3128'"), "names more than one host"));
    CHECK(contains(problem("via: 'http://10.0.0.0/8:3128'"), "network.via: "));
    CHECK(contains(problem("direct: [a.example]"), "network: names no proxy"));
    CHECK(contains(problem("via: 'http://p.example:1', direct: ['a.example:22']"), "network.direct: a.example:22 has a port"));
    CHECK(contains(problem("via: 'http://p.example:1', via_login_file: proxy.login"),
                   "network.via_login_file: 'proxy.login' is not absolute"));
}

TEST_CASE("a provider has a file with its key, and some need a host")
{
    const auto policy = parse(head + "network: {hosts: []}\nproviders:\n  anthropic: {key_file: /etc/pi-agent/a.key}\n"
                                     "  amazon-bedrock: {key_file: /etc/pi-agent/b.key, host: bedrock-runtime.eu-west-1.amazonaws.com}\n");
    REQUIRE(policy.providers.size() == 2);
    CHECK(policy.providers[0].name == "anthropic");
    CHECK(policy.providers[0].key_file.path == "/etc/pi-agent/a.key");
    CHECK(policy.providers[0].host == "api.anthropic.com");
    CHECK(to_string(policy.providers[0].where) == "p.yaml:5:3");
    CHECK(policy.providers[1].host == "bedrock-runtime.eu-west-1.amazonaws.com");
    const auto problem = [](const std::string &providers) {
        return problems_of(head + "network: {hosts: []}\nproviders: " + providers + "\n");
    };
    CHECK(contains(problem("{anthropic: {}}"), "p.yaml:4:13: providers.anthropic: has no key_file; name the file"));
    CHECK(contains(problem("{anthropic: {key_file: a.key}}"), "providers.anthropic.key_file: 'a.key' is not absolute"));
    CHECK(contains(problem("{azure-openai-responses: {key_file: /etc/k}}"),
                   "providers.azure-openai-responses: has a host for each customer, and none is named"));
    const std::string key = "{key_file: /etc/k, host: ours.openai.azure.com}";
    for (const char *name : {"azure", "azure-openai-responses"})
        CHECK(problem("{" + std::string(name) + ": " + key + "}").empty());
    CHECK(contains(problem("{azure: " + key + ", azure-openai-responses: " + key + "}"),
                   "providers.azure-openai-responses: names the provider azure a second time"));
    for (const std::string host :
         {"'*.openai.azure.com'", "a.b.openai.azure.com", "openai.azure.com", "example.org", "ours.openai.azure.com:443"})
        CHECK_MESSAGE(contains(problem("{azure-openai-responses: {key_file: /etc/k, host: " + host + "}}"),
                               "providers.azure-openai-responses.host: "),
                      host);
    CHECK(contains(problem("{anthropic: {key_file: /etc/k, host: example.org}}"), "its key goes to no other host"));
    CHECK(contains(problem("{github-copilot: {key_file: /etc/k}}"),
                   "providers.github-copilot: the gate does not know the provider 'github-copilot'"));
    CHECK(contains(problem("{word: word}"), "providers.word: must be a mapping"));
    CHECK(contains(problem("{antropic: {key_file: /etc/k}}"), "did you mean 'anthropic'?"));
    CHECK(contains(problem("{anthropic: /etc/k}"), "providers.anthropic: must be a mapping"));
    CHECK(contains(problem("[anthropic]"), "providers: must be a mapping"));
}

TEST_CASE("a key that stays outside needs a network that a gate leads out of")
{
    const std::string providers = "providers: {anthropic: {key_file: /etc/k}}\n";
    const std::string refused = "providers: its key stays outside, but the network of these sessions is ";
    CHECK(contains(problems_of(head + providers), "p.yaml:3:13: " + refused + "full (the default)"));
    CHECK(contains(problems_of(head + "network: full\n" + providers), refused + "full (p.yaml:3:10)"));
    CHECK(contains(problems_of(head + "network: loopback\n" + providers), refused + "loopback (p.yaml:3:10)"));
    CHECK(contains(problems_of(head + "network: [10.0.0.0/8]\n" + providers), refused + "a list of ranges (p.yaml:3:10)"));
    CHECK(problems_of(head + "network: {hosts: []}\n" + providers).empty());
    CHECK(problems_of(head + "network: none\n" + providers).empty()); // it has the key of nobody
    CHECK(problems_of(head + "providers: {}\n").empty());
}

TEST_CASE("the levels of each session count for that, not the levels alone")
{
    const std::string key = "providers: {anthropic: {key_file: /etc/k}}";
    const auto of = [&](const std::string &top, const std::string &users) {
        return problems_of("version: 1\nagent: {accounts: shared}\n" + top + "users: " + users + "\n");
    };
    CHECK(of("", "{alice: {roots: [{path: /srv/a, network: {hosts: []}}], " + key + "}}").empty());
    CHECK(contains(of("", "{alice: {roots: [{path: /srv/a, network: {hosts: []}}, /srv/b], " + key + "}}"), "full (the default)"));
    CHECK(contains(of("", "{alice: {roots: [/srv/a], " + key + "}}"), "p.yaml:3:46: users.alice.providers: its key stays outside"));
    CHECK(contains(of("network: {hosts: []}\n" + key + "\n", "{alice: {roots: [/srv/a], network: full}}"), "full (p.yaml:5:"));
    CHECK(of("network: {hosts: []}\n" + key + "\n", "{alice: {roots: [/srv/a], network: full, providers: {}}}").empty());
    CHECK(contains(of("network: {hosts: []}\n" + key + "\n", "{alice: {roots: [{path: /srv/a, network: loopback}]}}"), "loopback ("));
    // What a group says holds for members with an entry of their own, too: who is one is for the start to find out.
    CHECK(of("", "{'%devs': {roots: [/srv/d], network: {hosts: []}}, alice: {roots: [/srv/a], " + key + "}}").empty());
    // One mistake, once.
    const auto twice = of(key + "\n", "{alice: {roots: [/srv/a, /srv/b]}, bob: {roots: [/srv/c]}}");
    CHECK(twice.find("its key stays outside") == twice.rfind("its key stays outside"));
}

TEST_CASE("a method without a gate has neither hosts nor keys outside")
{
    for (const std::string method : {"none", "bwrap"}) {
        const std::string text = "version: 1\nsandbox: {method: " + method + "}\nusers: {alice: {roots: [/srv/a]";
        const std::string refused = "sandbox.method " + method + " (p.yaml:2:19) has no gate";
        CHECK(contains(problems_of(text + "}}\nnetwork: {hosts: [a.example]}\n"), "p.yaml:4:10: network: " + refused));
        CHECK(contains(problems_of(text + ", network: {hosts: [a.example]}}}\n"), "users.alice.network: " + refused));
        CHECK(contains(problems_of(text + "}}\nnetwork: none\nproviders: {openai: {key_file: /etc/k}}\n"), "providers: " + refused));
    }
    for (const std::string method : {"systemd", "podman"})
        CHECK_MESSAGE(
            problems_of("version: 1\nsandbox: {method: " + method + "}\nnetwork: {hosts: [a.example]}\nusers: {alice: {roots: [/srv/a]}}\n")
                .empty(),
            method);
}

TEST_CASE("groups give the hosts and the providers of both, and of one provider one key")
{
    const auto rules_of_users = [](const std::string &of_group, const std::string &of_other) {
        const auto policy = parse("version: 1\nagent: {accounts: shared}\nusers: {'%one': {roots: [/srv/a], " + of_group +
                                  "}, '%two': {roots: [/srv/b], " + of_other + "}}\n");
        Rules rules = rules_of(policy.users.at(0).rules);
        const auto differing = join(rules, rules_of(policy.users.at(1).rules));
        return std::pair(rules, differing);
    };
    const auto [joined, same] =
        rules_of_users("network: {hosts: [a.example], may_grant: [c.example]}, providers: {openai: {key_file: /etc/k}}",
                       "network: {hosts: [b.example, a.example]}, providers: {google: {key_file: /etc/g}}");
    CHECK(same.empty());
    CHECK(texts_of(joined.network->hosts) == "a.example b.example");
    CHECK(texts_of(joined.network->may_grant) == "c.example");
    CHECK(joined.providers->size() == 2);
    const auto [ignored, differing] = rules_of_users("network: {hosts: []}, providers: {openai: {key_file: /etc/k}}",
                                                     "network: none, providers: {openai: {key_file: /etc/l}}");
    CHECK(differing == std::vector<std::string>{"network", "providers"});
}

} // namespace policy_hosts_test

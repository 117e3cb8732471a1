// What `check` says of rules by name, and `why` and `explain` of hosts: admin/diagnose/faults.hpp, admin/diagnose/explain.hpp
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/explain.hpp"
#include "support/host_pairs.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace pi_agent;
using namespace pi_agent::test;

namespace host_rules_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

std::string joined(const std::vector<Diagnostic> &found)
{
    std::string text;
    for (const auto &one : found)
        text += to_string(one) + "\n";
    return text;
}

std::string suffixes_of(const std::string &hosts)
{
    Problems problems;
    check_host_rules(parse(head + "network: {hosts: " + hosts + "}\n"), problems);
    return joined(problems.all());
}

std::string odd(const std::string &rules, const std::string &of_alice = "")
{
    return joined(find_odd_host_rules(parse("version: 1\nusers: {alice: {roots: [/srv/a]" + of_alice + "}}\n" + rules)));
}

// "host:port", or nothing for a path.
std::string host_in(const std::string &text, const std::string &directory = "/nowhere")
{
    const auto rule = host_of_question(text, directory);
    return rule ? rule->host + ":" + std::to_string(rule->port) : "";
}

} // namespace

TEST_CASE("names below which anybody can have one are refused, and no others")
{
    for (const std::string name : {"com", "co.uk", "github.io", "s3.amazonaws.com"})
        CHECK_MESSAGE(contains(suffixes_of("['*." + name + "']"),
                               "p.yaml:3:19: network.hosts: '*." + name + "': anybody can have a name below " + name),
                      name);
    for (const std::string name : {"example.com", "example.org", "corp", "internal.example", "anthropic.com"})
        CHECK_MESSAGE(suffixes_of("['*." + name + "']").empty(), name);
    CHECK(suffixes_of("[github.io, com]").empty()); // one host
    const std::pair<std::string, std::string> above[] = {
        {"amazonaws.com", "s3.amazonaws.com"},
        {"eu-west-1.amazonaws.com", "s3.*.amazonaws.com"},
        {"windows.net", "*.core.windows.net"},
        {"blob.core.windows.net", "*.core.windows.net"},
        {"r2.cloudflarestorage.com", "r2.cloudflarestorage.com"},
        {"ngrok-free.app", "ngrok-free.app"},
    };
    for (const auto &one : above) {
        const std::string &name = one.first; // clang 14 captures no part of a pair
        CHECK_MESSAGE(contains(suffixes_of("['*." + name + "']"), "'*." + name + "': anybody can have a name below " + one.second), name);
    }
    for (const std::string name :
         {"bedrock-runtime.eu-west-1.amazonaws.com", "mine.s3.amazonaws.com", "mine.openai.azure.com", "azure.com.example"})
        CHECK_MESSAGE(suffixes_of("['*." + name + "']").empty(), name);
    CHECK(contains(suffixes_of("['localhost:808']"), "'localhost:808': the gate itself listens there"));
    CHECK(suffixes_of("['localhost:8080', 'a.example:808']").empty());
    std::string many;
    for (int port = 2000; port < 2200; ++port)
        many += (many.empty() ? "'localhost:" : ", 'localhost:") + std::to_string(port) + "'";
    CHECK(suffixes_of("[" + many + ", 'localhost:2000']").empty());
    CHECK(contains(suffixes_of("[" + many + ", 'localhost:1000']"), "names more than 200 ports of this host's own loopback"));
    Problems problems;
    check_host_rules(parse("version: 1\nagent: {accounts: shared}\nusers: {alice: {roots: [{path: /srv/a, network: {hosts: ['*.com']}}], "
                           "network: {hosts: [], may_grant: ['*.org']}}}\n"),
                     problems);
    CHECK(contains(joined(problems.all()), "users.alice.roots[0].network.hosts: '*.com'"));
    CHECK(contains(joined(problems.all()), "users.alice.network.may_grant: '*.org'"));
}

TEST_CASE("a '*' that leaves out its own name, and rules that add nothing, are told")
{
    CHECK(odd("network: {hosts: [a.example.org, github.com, 'github.com:22', '10.0.0.1']}\n").empty());
    CHECK(
        contains(odd("network: {hosts: ['*.example.org']}\n"),
                 "p.yaml:3:19: network.hosts: '*.example.org' names hosts below example.org, and not example.org itself; add example.org"));
    CHECK(odd("network: {hosts: ['*.example.org', example.org]}\n").empty());
    CHECK(contains(odd("network: {hosts: ['*.example.org:80', example.org]}\n"), "add example.org:80"));
    const auto twice = odd("network: {hosts: [a.example.org, A.example.org]}\n");
    CHECK(contains(twice, "p.yaml:3:34: network.hosts: 'a.example.org' adds nothing: 'a.example.org' (p.yaml:3:19) names all of it"));
    CHECK_FALSE(contains(twice, "p.yaml:3:19: network.hosts"));
    CHECK(contains(odd("network: {hosts: [b.a.example.org, '*.a.example.org', a.example.org]}\n"),
                   "'b.a.example.org' adds nothing: '*.a.example.org'"));
    CHECK(contains(odd("network: {hosts: [10.0.0.0/8, 10.1.2.3]}\n"), "'10.1.2.3' adds nothing: '10.0.0.0/8'"));
    CHECK(contains(odd("network: {hosts: [a.example.org], may_grant: [a.example.org]}\n"),
                   "network.may_grant: 'a.example.org' is in hosts already"));
}

TEST_CASE("an address of the loopback that no program inside comes to by itself is told")
{
    CHECK(odd("network: {hosts: ['localhost:5432', '127.0.0.1:1', '[::1]:2']}\n").empty());
    for (const std::string host : {"127.0.0.2", "127.0.0.0/8", "app.localhost"})
        CHECK_MESSAGE(contains(odd("network: {hosts: ['" + host + ":5432']}\n"),
                               "only the proxy leads there; write localhost:5432 if the service listens at one of these, too"),
                      host);
    CHECK(suffixes_of("['127.0.0.2:808']").empty());
    CHECK(contains(suffixes_of("['127.0.0.0/8:808']"), "the gate itself listens there"));
}

TEST_CASE("a network without hosts, metadata, and a rule beside a provider's own route are told")
{
    CHECK(contains(odd("network: {hosts: []}\n"), "network: names no host, and there are no providers, so sessions reach nothing"));
    CHECK(odd("network: {hosts: []}\nproviders: {openai: {key_file: /etc/k}}\n").empty());
    CHECK(odd("network: {may_grant: [a.example.org, '*.example.org:80']}\n").empty());
    CHECK(contains(odd("network: {hosts: ['169.254.169.254:80']}\n"), "hand out the host's own credentials"));
    CHECK_FALSE(contains(odd("network: {hosts: ['169.254.0.0/16:80', '169.254.169.254:80']}\n"), "adds nothing")); // a range is without it
    CHECK(contains(odd("network: {hosts: [api.openai.com]}\nproviders: {openai: {key_file: /etc/k}}\n"),
                   "network.hosts: 'api.openai.com' names api.openai.com, to which requests go with the key of providers.openai"));
    CHECK(contains(odd("network: {may_grant: ['*.openai.com']}\nproviders: {openai: {key_file: /etc/k}}\n"),
                   "network.may_grant: '*.openai.com' names api.openai.com, to which requests go with the key of providers.openai"));
    const auto of_a_user = odd("network: {hosts: [api.openai.com]}\n", ", providers: {openai: {key_file: /etc/k}}");
    CHECK(contains(of_a_user, "p.yaml:3:19: network.hosts: 'api.openai.com' names api.openai.com"));
}

TEST_CASE("a name that only an own name server knows needs a rule for the address that it leads to")
{
    for (const std::string host : {"intranet", "git.corp", "'*.lan'"})
        CHECK_MESSAGE(
            contains(odd("network: {hosts: [" + host + "]}\n"), "is not a name of the Internet, so it leads into a network of yours"),
            host);
    CHECK(contains(odd("network: {hosts: ['git.corp:22', 10.0.0.0/8]}\n"), "with the same port, e.g. 10.20.0.0/16:22"));
    CHECK(odd("network: {hosts: ['git.corp:22', '10.0.0.0/8:22']}\n").empty());
    CHECK(odd("network: {hosts: [git.corp, 10.20.0.5]}\n").empty());
    CHECK(odd("network: {hosts: [localhost, xn--bcher-kva.de, a.co.uk]}\n").empty());
}

TEST_CASE("a question is about a host where it says a port or is a URL, and otherwise where no file has that name")
{
    CHECK(host_in("github.com:22") == "github.com:22");
    CHECK(host_in("https://api.openai.com/v1/models") == "api.openai.com:443");
    CHECK(host_in("http://deb.debian.org/debian") == "deb.debian.org:80");
    CHECK(host_in("10.20.0.5") == "10.20.0.5:443");
    CHECK(host_in("[::1]:80") == "::1:80");
    CHECK(host_in("http://[fd00::5]/x") == "fd00::5:80");
    CHECK(host_in("localhost") == "localhost:443");
    CHECK(host_in("packages.example.org") == "packages.example.org:443");
    for (const char *path : {"/etc/passwd", "./a.example", "src", "src/a.example", "..", ".git", "~/x", "", "a b.example", "a:b"})
        CHECK_MESSAGE(host_in(path).empty(), path);
    const TemporaryDirectory directory;
    directory.write("README.md", "");
    CHECK(host_in("README.md", directory.path()).empty());
    CHECK(host_in("OTHER.md", directory.path()) == "other.md:443");
    CHECK(host_in("README.md:443", directory.path()) == "readme.md:443");
    CHECK(host_in("github.com.") == "github.com:443");
    CHECK(host_in("::ffff:10.0.0.1") == "10.0.0.1:443");
    CHECK(host_in("ssh://git@github.com/owner") == "github.com:22");
    CHECK_THROWS_WITH_AS(host_in("https://a b/"), doctest::Contains("is not the name of a host"), Failure);
    CHECK_THROWS_WITH_AS(host_in("file:///etc"), doctest::Contains("is not the name of a host"), Failure);
    CHECK_THROWS_WITH_AS(host_in("*.example.org"), doctest::Contains("is many hosts"), Failure);
}

TEST_CASE("who asks for what is no file, and may be a host, hears of both")
{
    const auto hint = [](const std::string &text) { return hint_of_file(text, *host_of_question(text, "/nowhere")); };
    CHECK(hint("README.md") == "  a file:    there is none of this name; for one, ask with ./README.md\n");
    for (const char *text : {"README.md:443", "https://a.example/README.md", "10.0.0.1", "localhost"})
        CHECK_MESSAGE(hint(text).empty(), text);
}

TEST_CASE("the answer names rule, line and the key of the level that says it")
{
    const auto policy = parse(head + "network: {hosts: [github.com], may_grant: ['*.debian.org:80']}\n");
    CHECK(host_text(*host_of_question("github.com", "/nowhere"), policy) ==
          "github.com:443: may be reached\n  rule:      a rule names it (github.com) (p.yaml:3:19)\n  to change: network.hosts\n");
    CHECK(contains(host_text(*host_of_question("[::1]:80", "/nowhere"), policy), "[::1]:80: cannot be reached\n"));
    auto of_alice = policy;
    of_alice.rules.places["network"] = {{"p.yaml", 9, 1}, "users.alice.network"};
    const auto json = host_json(*host_of_question("deb.debian.org:80", "/nowhere"), of_alice);
    CHECK(json["key"] == "users.alice.network.hosts");
    CHECK((json["reach"] == false && json["may_be_added"] == true && json["port"] == 80));
    const auto listed = parse(head + "network: [10.0.0.0/8]\n");
    CHECK(host_json(*host_of_question("a.example", "/nowhere"), listed)["reach"].is_null());
    CHECK(contains(host_text(*host_of_question("a.example", "/nowhere"), listed), "a.example:443: cannot be decided by its name"));
}

TEST_CASE("a proxy above the gate is explained, and is missed where a level leaves it out")
{
    const std::string proxied = "network: {hosts: [git.corp], via: 'http://p.example:3128'";
    CHECK(odd(proxied + "}\n").empty()); // the proxy knows where that leads
    CHECK(contains(odd(proxied + "}\n", ", network: {hosts: [a.example.org]}"), "users.alice.network: has no via"));
    CHECK(contains(odd(proxied + ", direct: [b.example.org]}\n"), "network.direct: 'b.example.org' is in none of hosts"));
    CHECK(odd(proxied + ", direct: ['*.corp']}\n").empty());
    const auto policy = parse(head + proxied + ", direct: ['*.corp'], via_login_file: /etc/pi-agent/p.login}\n");
    CHECK(contains(network_text(policy), "by the proxy p.example:3128 (p.yaml:3:35), with a login, but for *.corp\n"));
    nlohmann::json json;
    add_network(policy, json);
    CHECK((json["network"]["via"] == "http://p.example:3128" && json["network"]["via_login_file"] == "/etc/pi-agent/p.login"));
}

TEST_CASE("hosts, what may be added, and keys that stay outside are explained, as text and as JSON")
{
    const auto policy = parse(head + "network: {hosts: [github.com, 'github.com:22'], may_grant: ['*.debian.org:80']}\n"
                                     "providers: {anthropic: {key_file: /etc/pi-agent/a.key}, openai: {key_file: /etc/pi-agent/o.key}}\n");
    const auto text = network_text(policy);
    CHECK(contains(text, "network:  these hosts: github.com, github.com:22 (p.yaml:3:10), and a loopback of its own;\n"));
    CHECK(contains(text, "          its user may add (pi --pi-agent-allow): *.debian.org:80\n"));
    CHECK(contains(text,
                   "keys:     anthropic at api.anthropic.com: its key stays outside (p.yaml:4:13)\n          openai at api.openai.com"));
    nlohmann::json json;
    add_network(policy, json);
    CHECK(json["network"]["mode"] == "hosts");
    CHECK(json["network"]["hosts"] == nlohmann::json{"github.com", "github.com:22"});
    CHECK(json["network"]["may_grant"] == nlohmann::json{"*.debian.org:80"});
    CHECK(json["providers"][0]["name"] == "anthropic");
    nlohmann::json full;
    add_network(parse(head), full);
    CHECK((full["network"]["mode"] == "full" && full["providers"].empty() && !full["network"].contains("hosts")));
}

TEST_CASE("of 10,000 pairs of rule and host `check` and `why` say what the policy says")
{
    const auto seed = seed_of_run();
    std::cout << "pairs of rule and host drawn with PI_AGENT_SEED=" << seed << '\n';
    HostPairs pairs(seed);
    int covered = 0;
    for (int number = 0; number < 10'000;) {
        const HostPair pair = pairs.draw();
        auto rule = parse_host_rule(pair.rule);
        const auto asked = parse_host_question(pair.host);
        if (!asked || std::holds_alternative<TextProblem>(rule)) continue;
        ++number;
        const HostRule first = std::get<HostRule>(std::move(rule));
        const bool is_covered = covers(first, *asked);
        covered += is_covered ? 1 : 0;
        Policy policy;
        policy.network = NetworkPolicy{NetworkMode::hosts, {}, {"p.yaml"}, {first}};
        const bool is_reached = contains(host_text(*asked, policy), ": may be reached\n");
        CHECK_MESSAGE(is_reached == is_covered, "seed " << seed << ": " << pair.rule << " for " << pair.host);
        policy.rules.network = policy.network;
        policy.rules.network->hosts.push_back({asked->host, asked->port, {"p.yaml", 2}});
        const auto found = find_odd_host_rules(policy);
        const bool adds_nothing = std::any_of(
            found.begin(), found.end(), [](const Diagnostic &one) { return one.where.line == 2 && contains(one.problem, "adds nothing"); });
        CHECK_MESSAGE(adds_nothing == is_covered, "seed " << seed << ": " << pair.rule << " and " << pair.host);
    }
    CHECK(covered > 1000);
}

} // namespace host_rules_test

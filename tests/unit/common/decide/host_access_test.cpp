// Which rule decides about a host: common/decide/explained.hpp
#include "common/decide/explained.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace host_access_test {

namespace {

HostAccess ask(const std::string &rules, const std::string &host)
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\n" + rules);
    return host_access(policy.network, policy.providers, *parse_host_question(host));
}

std::string answer(const std::string &rules, const std::string &host)
{
    const auto access = ask(rules, host);
    const char *reach = access.reach == Reach::yes ? "yes: " : access.reach == Reach::no ? "no: " : "unknown: ";
    const std::string where = access.where.file.empty() ? "" : " (" + to_string(access.where) + ")";
    return reach + access.rule + where + "; " + access.key;
}

} // namespace

TEST_CASE("an open network reaches everything, and a closed one nothing")
{
    CHECK(answer("", "a.example") == "yes: the session has the host's network, without restriction; network");
    CHECK(answer("network: full\n", "10.0.0.1:80") ==
          "yes: the session has the host's network, without restriction (p.yaml:3:10); network");
    CHECK(answer("network: none\n", "localhost:5432").starts_with("no: the session has a network of its own"));
    CHECK(ask("network: loopback\n", "localhost:5432").reach == Reach::yes);
    CHECK(ask("network: loopback\n", "a.example").reach == Reach::no);
}

TEST_CASE("a list of addresses decides about addresses")
{
    const std::string list = "network: [10.0.0.0/8, 127.0.0.0/8, '::1/128']\n";
    CHECK(answer(list, "10.1.2.3:80") == "yes: the list has it (10.0.0.0/8) (p.yaml:3:10); network");
    CHECK(ask(list, "11.0.0.1").reach == Reach::no);
    CHECK(ask(list, "[::1]:80").reach == Reach::yes);
    CHECK(ask(list, "localhost:80").reach == Reach::yes);
    CHECK(ask("network: [10.0.0.0/8]\n", "localhost:80").reach == Reach::no);
    CHECK(ask(list, "a.example").reach == Reach::unknown);
}

TEST_CASE("of hosts the rule that names one is told, with its line, and what is close to one")
{
    const std::string hosts = "network:\n  hosts: ['*.example.org', github.com, 'github.com:22']\n  may_grant: ['*.debian.org:80']\n"
                              "providers: {anthropic: {key_file: /etc/k}}\n";
    CHECK(answer(hosts, "packages.example.org") == "yes: a rule names it (*.example.org) (p.yaml:4:11); network.hosts");
    CHECK(answer(hosts, "github.com:22") == "yes: a rule names it (github.com:22) (p.yaml:4:40); network.hosts");
    CHECK(answer(hosts, "example.org") == "no: no rule names it (p.yaml:4:3); network.hosts");
    CHECK(answer(hosts, "github.com:80") == "no: a rule names this host, but not this port (github.com) (p.yaml:4:28); network.hosts");
    CHECK(answer(hosts, "deb.debian.org:80")
              .starts_with("no: no rule names it, but its user may add it: pi --pi-agent-allow deb.debian.org:80"));
    CHECK(ask(hosts, "deb.debian.org:80").may_be_added);
    CHECK_FALSE(ask(hosts, "deb.debian.org").may_be_added);
    CHECK(answer(hosts, "api.anthropic.com").starts_with("yes: the agent's requests to anthropic go there with a key from outside"));
    CHECK(ask(hosts, "api.anthropic.com:80").reach == Reach::no);
    CHECK(ask(hosts, "10.0.0.1").reach == Reach::no);
}

TEST_CASE("only a host that `pi` would take is offered to who may add hosts")
{
    const std::string hosts = "network: {hosts: [github.com], may_grant: ['*.example.org', 198.0.0.0/8, 'fc00::/6']}\n";
    for (const char *text : {"a.example.org", "198.20.0.1", "fd00::1"})
        CHECK_MESSAGE(ask(hosts, text).may_be_added, text);
    for (const char *text : {"-a.example.org", "198.18.0.5", "fe80::1", "fd00:ec2::254", "a.example.org:80"})
        CHECK_MESSAGE((!ask(hosts, text).may_be_added && ask(hosts, text).rule == "no rule names it"), text);
    CHECK_FALSE(ask("network: {hosts: [github.com], may_grant: []}\n", "a.example").may_be_added);
}

} // namespace host_access_test

// The key `network`: common/policy/policy_sections.hpp
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_network_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

std::vector<std::string> allowed_by(const std::string &value)
{
    std::vector<std::string> texts;
    for (const auto &range : parse(head + "network: " + value + "\n").network.allowed)
        texts.push_back(to_string(range));
    return texts;
}

NetworkMode mode_of(const std::string &value)
{
    return parse(head + "network: " + value + "\n").network.mode;
}

} // namespace

TEST_CASE("the network is the host's unless the policy says otherwise, and each mode has its name")
{
    CHECK(parse(head).network.mode == NetworkMode::full);
    CHECK(mode_of("full") == NetworkMode::full);
    CHECK(mode_of("loopback") == NetworkMode::loopback);
    CHECK(mode_of("none") == NetworkMode::none);
    CHECK(allowed_by("loopback") == std::vector<std::string>{"127.0.0.0/8", "::1/128"});
    CHECK((allowed_by("full").empty() && allowed_by("none").empty()));
    CHECK(to_string(parse(head + "network: none\n").network.where) == "p.yaml:3:10");
}

TEST_CASE("a list is exactly what it says, in both ways of writing one")
{
    CHECK(mode_of("[10.0.0.0/8]") == NetworkMode::listed);
    CHECK(allowed_by("[10.0.0.0/8, \"fd00::/8\", \"::1/128\"]") == std::vector<std::string>{"10.0.0.0/8", "fd00::/8", "::1/128"});
    CHECK(allowed_by("\n  - 10.0.0.0/8\n  - fd00::/8\n") == std::vector<std::string>{"10.0.0.0/8", "fd00::/8"});
}

TEST_CASE("what is wrong is told with its place in the list and a remedy")
{
    CHECK(contains(problems_of(head + "network: [10.0.0.0/8, 10.1.2.3/8]\n"),
                   "p.yaml:3:23: network[1]: '10.1.2.3/8' has bits beyond its prefix length; write 10.0.0.0/8"));
    CHECK(contains(problems_of(head + "network: [any]\n"), "network[0]: 'any' is not a range of addresses; say 'network: full'"));
    CHECK(contains(problems_of(head + "network: [1.5]\n"), "network[0]: must be text"));
    CHECK(contains(problems_of(head + "network: []\n"), "p.yaml:3:10: network: is an empty list; say 'network: none'"));
    CHECK(contains(problems_of(head + "network: 10.0.0.0/8\n"),
                   "network: '10.0.0.0/8' is a range of addresses without a list around it; write [\"10.0.0.0/8\"]"));
    CHECK(contains(problems_of(head + "network: any\n"), "network: unknown value 'any'; use full or loopback or none"));
    CHECK(contains(problems_of(head + "network: nnoe\n"), "did you mean 'none'?"));
    CHECK(contains(problems_of(head + "network: {mode: none}\n"), "network.mode: unknown key"));
    CHECK(contains(problems_of(head + "network: [example.org]\n"), "names stand in {hosts: [...]}"));
    CHECK(contains(problems_of(head + "network:\n"), "network: must be full or loopback or none, a list, or a mapping, found nothing"));
}

} // namespace policy_network_test

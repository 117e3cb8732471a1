// What the policy takes for a rule, the gate takes, too, and both mean the same by it: common/policy/host_rule.hpp, gate/rules.hpp
#include "common/policy/host_rule.hpp"
#include "gate/rules.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace policy_rules_test {

namespace {

constexpr const char *texts[] = {
    "a.example",     "A.Example",      "*.a.example",           "*.b.a.example",  "b.a.example",   "c.b.a.example", "a.example:80",
    "ba.example",    "a_b.example",    "xn--bcher-kva.example", "intranet",       "1.example",     "localhost",     "localhost:80",
    "127.0.0.1",     "127.0.0.1:80",   "127.0.0.0/8",           "[::1]:80",       "10.20.0.5",     "10.20.0.5:80",  "10.20.0.0/16",
    "10.0.0.0/8:80", "fd00::5",        "[fd00::5]:80",          "fd00::/8",       "[fd00::/8]:80", "8.8.8.8",       "2001:db8::1",
    "172.16.0.0/12", "169.254.0.0/16", "169.254.169.254",       "169.254.1.1",    "fd00:ec2::254", "a.localhost",   "localhost.a",
    "64::/16",       "64:ff9b::a14:5", "64:ff9b::a9fe:a9fe",    "64:ff9b::7f00:1"};

HostRule rule(const char *text)
{
    return std::get<HostRule>(parse_host_rule(text));
}

bool is_one_host(const HostRule &rule)
{
    return !is_wildcard(rule) && rule.host.find('/') == std::string::npos;
}

bool allowed_by_gate(const HostRule &written, const HostRule &asked)
{
    const auto host = read_host(asked.host);
    REQUIRE_MESSAGE(host, asked.host);
    return GateRules({GateRule{written.host, written.port, "p:1"}}).find(*host, asked.port).rule != nullptr;
}

} // namespace

TEST_CASE("the gate takes every rule of a policy, and allows by it what the policy says that it allows")
{
    int allowed = 0;
    for (const char *text : texts) {
        const auto written = rule(text);
        for (const char *asked_text : texts) {
            const auto asked = rule(asked_text);
            if (!is_one_host(asked)) continue;
            const bool by_gate = allowed_by_gate(written, asked);
            CHECK_MESSAGE(covers(written, asked) == by_gate, text << " for " << asked_text);
            allowed += by_gate ? 1 : 0;
        }
    }
    CHECK(allowed > 25);
}

TEST_CASE("neither means by a range where clouds give credentials to whoever asks")
{
    for (const char *text : metadata_addresses) {
        const auto one = rule(text);
        CHECK_MESSAGE((covers(one, one) && allowed_by_gate(one, one)), text);
        for (const char *range : {"169.254.0.0/16", "100.64.0.0/10", "168.0.0.0/8", "192.0.0.0/24", "fd00::/8", "64::/16"})
            CHECK_MESSAGE((!covers(rule(range), one) && !allowed_by_gate(rule(range), one)), text << " by " << range);
    }
    const auto translated = rule("64:ff9b::a9fe:a9fe");
    for (const char *range : {"169.254.0.0/16", "64::/16"})
        CHECK_MESSAGE((!covers(rule(range), translated) && !allowed_by_gate(rule(range), translated)), range);
}

} // namespace policy_rules_test

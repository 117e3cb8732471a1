// Whoever decides about a host by a rule decides alike: the gate, the policy, a start that adds one, `why` outside, and pi-agent-why inside
#include "common/decide/decision.hpp"
#include "common/decide/explained.hpp"
#include "gate/rules.hpp"
#include "runner/inside/canary.hpp"

#include "support/failure.hpp"
#include "support/host_pairs.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <iostream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace host_deciders_test {

namespace {

// The host of a question as a session says it to its gate: the part of a URL that is sent, with brackets around IPv6.
std::string said_to_gate(const std::string &question)
{
    std::string said = question.substr(question.find("://") == question.npos ? 0 : question.find("://") + 3);
    if (said.size() < question.size()) said = said.substr(0, said.find_first_of("/?#"));
    said.erase(0, said.size() < question.size() ? said.rfind('@') + 1 : 0);
    const bool is_bare_v6 = said.find(':') != said.rfind(':') && !said.starts_with('[');
    return is_bare_v6 ? "[" + said + "]" : said;
}

std::uint16_t usual_port(const std::string &question)
{
    return question.starts_with("http://") || question.starts_with("ws://") ? 80 : question.starts_with("ssh://") ? 22 : https_port;
}

NetworkPolicy network_with(std::vector<HostRule> hosts, std::vector<HostRule> grants)
{
    return {NetworkMode::hosts, {}, {"p.yaml"}, std::move(hosts), std::move(grants)};
}

class Deciders {
public:
    Deciders() { directory_.make("run/pi-agent"); }

    // What each says of the pair, as "gate+ policy- ...": a plus where it allows it.
    std::string ask(const HostRule &rule, const std::string &question)
    {
        const auto asked = parse_host_question(question);
        const auto target = read_target(said_to_gate(question), usual_port(question));
        const GateRules gate({GateRule{rule.host, rule.port, "p.yaml"}});
        const SessionHosts lists{network_with({rule}, {})};
        const SessionHosts read = decode_session_hosts(encode(lists));
        directory_.write(network_file, encode(lists));
        std::string said;
        const auto add = [&](const char *who, bool allows) { said += who + std::string(allows ? "+ " : "- "); };
        add("gate", target && gate.find(target->host, target->port).rule != nullptr);
        add("policy", asked && covers(rule, *asked));
        add("outside", asked && reaches(lists, *asked));
        add("list", asked && reaches(read, *asked));
        add("inside", why(question, directory_ / "").is_free);
        return said;
    }

    // Whether a start may add it where the policy grants the rule, and whether `why` offers that.
    static std::string ask_for_grant(const HostRule &rule, const HostRule &asked)
    {
        Policy policy;
        policy.network = network_with({}, {rule});
        const bool is_added = failure_of([&] { return granted(policy, {to_string(asked)}).network.hosts.size(); }).status == 0;
        const bool is_offered = host_access(policy.network, {}, asked).may_be_added;
        return std::string("start") + (is_added ? "+" : "-") + " offer" + (is_offered ? "+" : "-");
    }

private:
    static bool reaches(const SessionHosts &hosts, const HostRule &asked)
    {
        return host_access(hosts.network, hosts.providers, asked).reach == Reach::yes;
    }

    TemporaryDirectory directory_;
};

const std::string all_allow = "gate+ policy+ outside+ list+ inside+ ";
const std::string all_deny = "gate- policy- outside- list- inside- ";

std::optional<HostRule> read_rule(const std::string &text)
{
    auto parsed = parse_host_rule(text);
    return std::holds_alternative<HostRule>(parsed) ? std::optional(std::get<HostRule>(std::move(parsed))) : std::nullopt;
}

// `why` takes a word with a slash for a path, but for a URL; and so the two names of directories that have none.
bool is_path(const std::string &question)
{
    if (question == "." || question == "..") return true;
    return question.find('/') != question.npos && question.find("://") == question.npos;
}

struct Row {
    const char *rule;
    const char *host;
    bool is_allowed;
};

// Each of them was answered in two ways, when gate, policy and pi-agent-why compared by code of their own.
constexpr Row rows[] = {
    {"[2001:DB8:0:0:0:0:0:2]:22", "[2001:DB8:0:0:0:0:0:2]:22", true},
    {"fd00::0", "FD00::0", true},
    {"[fd00:0:0::1]:443", "FD00:0:0::1", true},
    {"10.20.0.0/30", "64:ff9b::a14:1", true},
    {"2001:db8::/32", "fe80::1%eth0", false},
    {"[64::/16]:80", "[9z.2001:DB8:0:0:0:0:0:1]:80", false},
    {"[fd00::/8]:80", "ws://[fd00:ec2::254]?q", false},
    {"10.21.2.1:443", "ssh://10.21.2.1.:443/", false},
    {"127.0.0.1:5432", "127.0.0.1.:5432", false},
    {"localhost:22", "127.1:22", false},
    {"localhost:22", "127.0.0.999:22", false},
    {"localhost:22", "[0:0:0:0:0:0:0:1]:22", true},
    {"localhost:443", "https://u:p@localhost:443/", true},
    {"localhost", "localhost.", true},
    {"b.x-y.b.x-y:80", "http://b.x-y.b.x-y:80?q", true},
    {"8.8.0.1", "::ffff:8.8.0.1", true},
    {"127.9.9.9:5432", "[::ffff:127.9.9.9]:5432", true},
    {"*.a", "http://example.x-y.a:443#f", true},
    {"b:22", "https://b.:22?q", true},
    {"fd00::/126", "[2001:DB8::0]:443", false},
    {"fd00::/8", "::1", false},
    {"64::/16", "fd00:0:0::0", false},
    {"64::/16", "64:ff9b::a14:1", false},
    {"[::2]:443", "::", false},
    {"x-y.example.org", "x-y.example.org.", true},
    {"128.0.0.0/1:80", "224.0.0.1:80", true},
    {"*.a_b", "host.a-.9z.1.a_b", true},
    {"*.a_b", "-host.a_b", true},
    {"xn--bcher-kva.a_b.org", "ws://xn--bcher-kva.a_b.org/", false},
    {"a_b", "ssh://a_b", false},
    {"10.20.0.0:22", "ssh://10.20.0.0/", true},
    {"*.9z", "ssh://9z.a_b.9z/", false},
    {"[fd00::3]:80", "ws://[fd00::3]/", true},
    {"host", "ws://host./", false},
    {"FD00::2", "https://FD00::2/x?y:1", true},
    {"*.example.org", "*.example.org", false},
    {"*.example.org", "a b.example.org", false},
    {"*.example.org", "\x1b[31m.example.org", false},
    {"b\xc3\xbc.example", "b\xc3\xbc.example", false},
};

} // namespace

TEST_CASE("pairs of rule and host that were answered in two ways have one answer")
{
    Deciders deciders;
    for (const auto &row : rows) {
        const auto rule = read_rule(row.rule);
        if (rule)
            CHECK_MESSAGE(deciders.ask(*rule, row.host) == (row.is_allowed ? all_allow : all_deny),
                          (row.rule + std::string(" for ") + row.host));
        CHECK_MESSAGE((rule || !row.is_allowed), std::string(row.rule));
    }
}

TEST_CASE("of 10,000 pairs of rule and host each has one answer, whoever decides")
{
    const auto seed = seed_of_run();
    std::cout << "pairs of rule and host drawn with PI_AGENT_SEED=" << seed << '\n';
    HostPairs pairs(seed);
    Deciders deciders;
    int allowed = 0;
    int offered = 0;
    int refused_alone = 0; // of a range that is granted, and no rule by itself
    for (int number = 0; number < 10'000;) {
        const HostPair pair = pairs.draw();
        const auto rule = read_rule(pair.rule);
        if (!rule || pair.host.empty() || is_path(pair.host)) continue;
        ++number;
        const std::string said = deciders.ask(*rule, pair.host);
        CHECK_MESSAGE((said == all_allow || said == all_deny),
                      "seed " << seed << ": " << pair.rule << " for " << pair.host << ": " << said);
        allowed += said == all_allow ? 1 : 0;
        const auto asked = parse_host_question(pair.host);
        if (!asked) continue;
        const std::string grant = Deciders::ask_for_grant(*rule, *asked);
        const bool is_rule = read_rule(to_string(*asked)).has_value();
        const bool is_covered = said == all_allow && is_rule;
        CHECK_MESSAGE(grant == (is_covered ? "start+ offer+" : "start- offer-"), pair.rule << " for " << pair.host << ": " << grant);
        offered += is_covered ? 1 : 0;
        refused_alone += said == all_allow && !is_rule ? 1 : 0;
    }
    CHECK(allowed > 1000);
    CHECK(offered > 1000);
    CHECK(refused_alone > 0);
}

} // namespace host_deciders_test

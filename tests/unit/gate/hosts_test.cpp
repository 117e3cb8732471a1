// Hosts as text, addresses that are nobody's business, and what rules say of both: gate/rules.hpp
#include "gate/rules.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace hosts_test {

namespace {

std::string read(std::string_view text)
{
    const auto host = read_host(text);
    return host ? (host->address ? "address " : "name ") + host->text : "none";
}

Address address(const char *text)
{
    return boost::asio::ip::make_address(text);
}

Host host(std::string_view text)
{
    const auto one = read_host(text);
    REQUIRE(one);
    return *one;
}

const GateRules &some_rules()
{
    static const GateRules rules({{"api.example.org", 443, "p:1"},
                                  {"*.npm.example", 443, "p:2"},
                                  {"github.example", 22, "p:3"},
                                  {"localhost", 5432, "p:4"},
                                  {"10.20.0.5", 8080, "p:5"},
                                  {"10.30.0.0/16", 443, "p:6"},
                                  {"fd12::/32", 443, "p:7"},
                                  {"169.254.0.0/16", 80, "p:8"},
                                  {"2001:db8::1", 443, "p:9"}});
    return rules;
}

std::string where(std::string_view text, std::uint16_t port)
{
    const RuleAnswer answer = some_rules().find(host(text), port);
    return answer.rule != nullptr ? answer.rule->where : answer.almost != nullptr ? "almost " + answer.almost->where : "";
}

} // namespace

TEST_CASE("a host is read into one form")
{
    CHECK(read("API.Example.Org.") == "name api.example.org");
    CHECK(read("localhost") == "name localhost");
    CHECK(read("_srv.a-b.example") == "name _srv.a-b.example");
    CHECK(read("192.0.2.1") == "address 192.0.2.1");
    CHECK(read("[2001:DB8::1]") == "address 2001:db8::1");
    CHECK(read("2001:db8:0::1") == "address 2001:db8::1");
    CHECK(read("::ffff:10.0.0.1") == "address 10.0.0.1");
}

TEST_CASE("an address of a socket is a host without a zone, so that what is told of it is in the alphabet of messages")
{
    const boost::asio::ip::address_v6 local(boost::asio::ip::make_address_v6("fe80::1").to_bytes(), 1); // of the first interface
    CHECK(to_host(local).text == "fe80::1");
    CHECK(to_host(local).address == boost::asio::ip::make_address("fe80::1"));
    CHECK(to_host(address("::ffff:10.0.0.1")).text == "10.0.0.1");
    CHECK(to_host(address("10.0.0.1")).text == "10.0.0.1");
}

TEST_CASE("what some library would take for an address is not a host")
{
    for (const std::string_view text : {"0x7f.1", "2130706433", "127.1", "0177.0.0.1", "1.2.3.4.", "1.2.3.256", "a.0x7f", "a.1", "0x",
                                        "fe80::1%eth0", "[fe80::1%25eth0]"})
        CHECK(read(text) == "none");
}

TEST_CASE("a host that nobody can have is not one")
{
    const std::string label(64, 'a');
    const std::string many = [] {
        std::string text;
        for (int count = 0; count < 127; ++count)
            text += "a.";
        return text + "aa";
    }();
    for (const std::string &text : {std::string(), std::string("."), std::string(".."), std::string("a..b"), std::string(".a"),
                                    std::string("a b"), std::string("a/b"), std::string("a@b"), std::string("a\0b", 3),
                                    std::string("b\xc3\xbc"
                                                "cher.example"),
                                    std::string("*.a"), label + ".a", many, std::string("[1.2.3.4]"), std::string("[::1"),
                                    std::string("::1]"), std::string("[]"), std::string("a:b")})
        CHECK(read(text) == "none");
}

TEST_CASE("a target needs its port where there is no usual one")
{
    const auto text = [](std::string_view from, std::uint16_t usual = 0) {
        const auto target = read_target(from, usual);
        return target ? target->host.text + " " + std::to_string(target->port) : "none";
    };
    CHECK(text("A.example:443") == "a.example 443");
    CHECK(text("[::1]:80") == "::1 80");
    CHECK(text("a.example", 80) == "a.example 80");
    CHECK(text("[::1]", 80) == "::1 80");
    for (const std::string_view from : {"a.example", "a.example:", "a.example:0", "a.example:65536", "a.example:+1", "a.example:1x",
                                        "::1:80", "u@a.example:80", "a.example:080443", "", ":80"})
        CHECK(text(from) == "none");
}

TEST_CASE("only addresses of the Internet are of the Internet")
{
    for (const char *text : {"93.184.216.34", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "198.17.255.255",
                             "198.20.0.1", "2606:4700::1111", "2001:4860:4860::8888", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::101:101"})
        CHECK_MESSAGE(is_of_internet(address(text)), text);
    for (const char *text : {"0.0.0.0",
                             "0.1.2.3",
                             "10.0.0.1",
                             "100.64.0.1",
                             "100.127.255.255",
                             "127.0.0.1",
                             "127.255.255.255",
                             "169.254.169.254",
                             "172.16.0.1",
                             "172.31.255.255",
                             "192.0.0.192",
                             "192.0.2.1",
                             "192.88.99.1",
                             "192.168.1.1",
                             "198.18.0.1",
                             "198.19.255.255",
                             "198.51.100.1",
                             "203.0.113.1",
                             "224.0.0.1",
                             "240.0.0.1",
                             "255.255.255.255",
                             "168.63.129.16",
                             "::",
                             "::1",
                             "::ffff:10.0.0.1",
                             "::ffff:127.0.0.1",
                             "::10.0.0.1",
                             "64:ff9b::a00:1",
                             "64:ff9b::7f00:1",
                             "64:ff9b:1::a00:1",
                             "100::1",
                             "fc00::1",
                             "fd00:ec2::254",
                             "fe80::1",
                             "fec0::1",
                             "ff02::1",
                             "2001::1",
                             "2001:db8::1",
                             "2002:a00:1::",
                             "2002:5db8:d822::1",
                             "3fff::1",
                             "4000::1"})
        CHECK_MESSAGE(!is_of_internet(address(text)), text);
}

TEST_CASE("below a network's own prefix to IPv4, the address inside counts, wherever the prefix has it")
{
    const auto inside = [](const char *known, const char *asked) {
        return translated(address(asked), translating_prefixes({address("192.0.0.170"), address(known)})).to_string();
    };
    CHECK(inside("2600:64::c000:aa", "2600:64::a00:5") == "10.0.0.5"); // 96 bits, and fewer
    CHECK(inside("2600:64::c000:ab", "2600:64::a00:5") == "10.0.0.5");
    CHECK(inside("2600:64:1:2:c0:0:aa00:0", "2600:64:1:2:a:0:500:0") == "10.0.0.5");
    CHECK(inside("2600:64:1:2c0:0:aa::", "2600:64:1:20a:0:5::") == "10.0.0.5");
    CHECK(inside("2600:64:1:c000:0:aa00::", "2600:64:1:a00:0:500::") == "10.0.0.5");
    CHECK(inside("2600:64:1c0:0:aa::", "2600:64:10a:0:5::") == "10.0.0.5");
    CHECK(inside("2600:64:c000:aa::", "2600:64:a00:5::") == "10.0.0.5");
    CHECK(inside("2600:64::c000:aa", "2600:65::a00:5") == "2600:65::a00:5"); // not below it
    CHECK(inside("2600:64::1", "2600:64::a00:5") == "2600:64::a00:5");       // no answer that says a prefix
    CHECK(translating_prefixes({}).empty());
}

TEST_CASE("this host's own addresses are here, whatever else it has")
{
    HostRoutes routes;
    for (const char *own : {"127.0.0.1", "127.5.5.5"})
        CHECK_MESSAGE(routes.place_of(address(own)) == Place::here, own);
}

TEST_CASE("rules name exact hosts and ports, and a star names what is below")
{
    CHECK(where("api.example.org", 443) == "p:1");
    CHECK(where("API.EXAMPLE.ORG.", 443) == "p:1");
    CHECK(where("api.example.org", 80) == "almost p:1");
    CHECK(where("xapi.example.org", 443).empty());
    CHECK(where("a.api.example.org", 443).empty());
    CHECK(where("a.npm.example", 443) == "p:2");
    CHECK(where("a.b.npm.example", 443) == "p:2");
    CHECK(where("npm.example", 443).empty());
    CHECK(where("xnpm.example", 443).empty());
    CHECK(where("github.example", 443) == "almost p:3");
    CHECK(where("localhost", 5432) == "p:4");
    CHECK(where("127.0.0.1", 5432) == "p:4");
    CHECK(where("::1", 5432) == "p:4");
    CHECK(where("a.localhost", 5432) == "p:4");
    CHECK(where("10.20.0.5", 8080) == "p:5");
    CHECK(where("::ffff:10.20.0.5", 8080) == "p:5");
    CHECK(where("10.20.0.6", 8080).empty());
    CHECK(where("10.30.255.1", 443) == "p:6");
    CHECK(where("fd12::1", 443) == "p:7");
}

TEST_CASE("a name leads into a network of the host only where a rule names the address with its port")
{
    const auto may = [](const char *text, std::uint16_t port) { return some_rules().may_lead_to(address(text), port); };
    CHECK(may("93.184.216.34", 443));
    CHECK(may("10.20.0.5", 8080));
    CHECK_FALSE(may("10.20.0.5", 443));
    CHECK(may("10.30.0.1", 443));
    CHECK(may("64:ff9b::a1e:1", 443)); // 10.30.0.1
    CHECK_FALSE(may("10.31.0.1", 443));
    CHECK(may("fd12::1", 443));
    CHECK_FALSE(may("127.0.0.1", 5432)); // "localhost" is not a name that leads there
    CHECK(may("169.254.1.1", 80));
    CHECK_FALSE(may("169.254.169.254", 80)); // a range does not mean it
    CHECK(GateRules({{"169.254.169.254", 80, {}}}).may_lead_to(address("169.254.169.254"), 80));
    const GateRules wide({{"169.254.0.0/16", 80, {}}, {"fd00::/8", 80, {}}});
    for (const char *text : {"169.254.170.23", "169.254.42.42", "fd00:ec2::254", "fd00:ec2::23", "fd00:42::42", "fd00:a9fe:a9fe::1",
                             "fd00:c1::a9fe:a9fe", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"})
        CHECK_FALSE_MESSAGE(wide.may_lead_to(address(text), 80), text);
    CHECK(wide.may_lead_to(address("fd00:ec2::1"), 80));
}

TEST_CASE("a rule that can never hold is refused when the gate starts")
{
    for (const char *text : {"a..b", "127.1", "*.10.0.0.1", "10.0.0.1/8", "10.0.0.0/33", "fd00::1/8", "a/8", "10.0.0.0/8/8"})
        CHECK_MESSAGE(has(failure_of([&] { return GateRules({{text, 443, "p:7"}}); }).text, "p:7"), text);
}

} // namespace hosts_test

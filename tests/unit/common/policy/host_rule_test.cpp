// Rules by name as an administrator writes them: common/policy/host_rule.hpp
#include "common/decide/explained.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace host_rule_test {

namespace {

// As it is understood, or what is wrong with it.
std::string read(const std::string &text)
{
    const auto parsed = parse_host_rule(text);
    if (const auto *problem = std::get_if<TextProblem>(&parsed)) return problem->text + "; " + problem->remedy;
    return to_string(std::get<HostRule>(parsed));
}

HostRule rule(const std::string &text)
{
    return std::get<HostRule>(parse_host_rule(text));
}

bool says(const std::string &text, const std::string &part)
{
    return read(text).find(part) != std::string::npos;
}

} // namespace

TEST_CASE("names, names below a name, and addresses are understood, each with its port")
{
    for (const char *text : {"api.anthropic.com", "*.example.org", "github.com:22", "localhost:5432", "intranet", "10.20.0.5:8080",
                             "10.20.0.5", "[fd00::5]:8080", "fd00::5", "xn--bcher-kva.example", "a_b.example", "1.example", "*.example:80"})
        CHECK(read(text) == text);
    CHECK(read("GitHub.COM:443") == "github.com");
    CHECK(read("[2001:0DB8:0:0::1]") == "2001:db8::1");
    CHECK((rule("a.example").port == 443 && rule("a.example:65535").port == 65535 && rule("[::1]:1").port == 1));
    CHECK(rule("[FD00::5]:22").host == "fd00::5");
}

TEST_CASE("what is meant otherwise is told with what to write")
{
    CHECK(read("https://api.openai.com/v1") == "is a URL; name the host alone: api.openai.com");
    CHECK(read("http://deb.debian.org/debian") == "is a URL; name the host alone: deb.debian.org:80");
    CHECK(says("http://[fd00::5]/x", "name the host alone: [fd00::5]:80"));
    CHECK(says("http://a.example:8080", "name the host alone: a.example:8080"));
    CHECK(says("github.com/owner", "has a path"));
    for (const char *text : {"*", "*:443"})
        CHECK_MESSAGE(says(text, "say 'network: full'"), text);
    CHECK(says("b\xc3\xbc"
               "cher.example",
               "begins with xn--"));
    CHECK(says("github.com.", "ends with a dot"));
    CHECK(says("*.localhost", "write localhost"));
}

TEST_CASE("a port that no connection has, and what is no name, are refused")
{
    for (const char *text : {"a.example:0", "a.example:", "a.example:65536", "a.example:080", "a.example:+80", "a.example:-1",
                             "a.example:https", "a.example: 80", "[::1]:", "[::1]:0", "10.0.0.1:0"})
        CHECK_MESSAGE(says(text, "has a port that is not a number from 1 to 65535"), text);
    for (const char *text : {"", ".example", "a..example", "-a.example", "a-.example", "a b.example", "a.example\n", "a@b.example", "a,b",
                             "*.", "$a.example", "a!.example", "::1::", "fe80::1%eth0"})
        CHECK_MESSAGE(says(text, "is not the name of a host"), text);
    for (const char *text : {"[::1", "[::1]80", "[a.example]:80", "[10.0.0.1]:80"})
        CHECK_MESSAGE(says(text, "is not a host with a port"), text);
    CHECK(says(std::string("a\0b", 3), "is not a host with a port"));
    for (const char *text : {"*a.example", "a.*.example", "a.*", "**.example", "*.*.example"})
        CHECK_MESSAGE(says(text, "has a '*' that is not its whole first part"), text);
    for (const char *text :
         {"10.1", "10", "1.2.3.4.5", "256.1.1.1", "010.0.0.1", "*.0.0.1", "0x7f.1", "127.0.0.0x1", "0x7f000001", "*.a.0x"})
        CHECK_MESSAGE(says(text, "is neither a name nor a whole address"), text);
    CHECK(says(std::string(64, 'a') + ".example", "is not the name of a host"));
    CHECK(read(std::string(63, 'a') + ".example") == std::string(63, 'a') + ".example");
    std::string longest;
    while (longest.size() < 250)
        longest += "a.";
    CHECK(read(longest + "abc") == longest + "abc");
    CHECK(says(longest + "abcd", "is not the name of a host"));
}

TEST_CASE("addresses that no connection goes to are refused")
{
    for (const char *text :
         {"0.0.0.0", "0.0.0.0:80", "0.1.2.3", "::", "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "ff02::1"})
        CHECK_MESSAGE(says(text, "is an address that leads to no host"), text);
    CHECK(says("::ffff:10.0.0.1", "write it as IPv4"));
    CHECK(says("[::ffff:127.0.0.1]:80", "write it as IPv4"));
    CHECK(says("198.18.0.1", "stand for names inside a session"));
    CHECK(says("198.19.255.255", "stand for names inside a session"));
    CHECK(read("198.20.0.0") == "198.20.0.0");
    CHECK(says("fe80::1", "needs an interface"));
    CHECK(read("169.254.169.254:80") == "169.254.169.254:80"); // who names it means it
}

TEST_CASE("a rule covers itself and, with a '*', all names below its own, with the same port")
{
    CHECK(covers(rule("a.example"), rule("A.example:443")));
    CHECK_FALSE(covers(rule("a.example"), rule("a.example:80")));
    CHECK_FALSE(covers(rule("a.example"), rule("b.a.example")));
    const auto below = rule("*.a.example");
    for (const char *text : {"b.a.example", "c.b.a.example", "*.b.a.example", "*.a.example"})
        CHECK_MESSAGE(covers(below, rule(text)), text);
    for (const char *text : {"a.example", "ba.example", "b.a.example:80", "*.example", "a.example.b", "10.0.0.1"})
        CHECK_FALSE_MESSAGE(covers(below, rule(text)), text);
    for (const char *text : {"localhost:80", "app.localhost:80", "127.0.0.1:80", "[::1]:80"})
        CHECK_MESSAGE(covers(rule("localhost:80"), rule(text)), text);
    CHECK_FALSE(covers(rule("localhost:80"), rule("127.0.0.1:81")));
    CHECK_FALSE(covers(rule("127.0.0.1"), rule("localhost")));
    const std::vector<HostRule> rules = {rule("b.a.example"), below};
    CHECK(rule_for(rules, rule("b.a.example")) == &rules[0]);
    CHECK(rule_for(rules, rule("c.a.example")) == &rules[1]);
    CHECK(rule_for(rules, rule("a.example")) == nullptr);
}

TEST_CASE("a range of addresses is one rule, for the servers that internal names lead to")
{
    for (const char *text : {"10.20.0.0/16", "10.20.0.0/16:8080", "fd00::/8", "[fd00::/8]:8080"})
        CHECK(read(text) == text);
    CHECK(read("10.20.0.5/32:80") == "10.20.0.5:80");
    CHECK(says("10.20.0.5/16", "has bits beyond its prefix length"));
    CHECK(says("10.20.0.0/33", "has a prefix length"));
    CHECK(says("0.0.0.0/0", "is every address"));
    CHECK(says("224.0.0.0/4", "is an address that leads to no host"));
    CHECK(covers(rule("10.20.0.0/16"), rule("10.20.3.4")));
    CHECK(covers(rule("10.20.0.0/16"), rule("10.20.4.0/24")));
    CHECK_FALSE(covers(rule("10.20.0.0/16"), rule("10.21.3.4")));
    CHECK_FALSE(covers(rule("10.20.4.0/24"), rule("10.20.0.0/16")));
    CHECK_FALSE(covers(rule("10.20.0.0/16"), rule("10.20.3.4:80")));
    CHECK_FALSE(covers(rule("10.20.0.0/16"), rule("git.example")));
    CHECK(covers(rule("169.254.0.0/16"), rule("169.254.1.1")));
    CHECK_FALSE(covers(rule("169.254.0.0/16"), rule("169.254.169.254"))); // so nobody grants it by a range
    CHECK_FALSE(covers(rule("fd00::/8"), rule("fd00:ec2::254")));
    CHECK(covers(rule("169.254.169.254"), rule("169.254.169.254")));
    CHECK_FALSE(covers(rule("[fd00::/8]:80"), rule("[fd00:ec2::254]:80")));
    CHECK(covers(rule("169.254.169.254"), rule("169.254.169.254/32")));
    CHECK(is_loopback(rule("127.0.0.0/8")));
}

TEST_CASE("a range with more in it than the loopback is refused, for it would open the loopback as well")
{
    for (const char *text : {"126.0.0.0/7", "0.0.0.0/1", "0.0.0.0/1:80", "64.0.0.0/2", "::/127", "::/1", "[::/8]:80"})
        CHECK_MESSAGE(says(text, "has this host's own loopback in it"), text);
    for (const char *text : {"128.0.0.0/1", "126.0.0.0/8", "127.0.0.0/8", "127.128.0.0/9", "8000::/1", "1::/16"})
        CHECK(read(text) == text);
}

TEST_CASE("an address of IPv4 in the form of NAT64 is what is inside of it, as the gate has it")
{
    CHECK(read("64:ff9b::a00:5") == "64:ff9b::a00:5");
    CHECK(covers(rule("64:ff9b::a00:5"), rule("64:ff9b::a00:5")));
    CHECK(covers(rule("10.0.0.0/8"), rule("64:ff9b::a00:5")));
    CHECK(covers(rule("10.0.0.5"), rule("64:ff9b::a00:5")));
    CHECK_FALSE(covers(rule("64:ff9b::a00:5"), rule("10.0.0.5")));
    CHECK_FALSE(covers(rule("64::/16"), rule("64:ff9b::a00:5")));
    CHECK(is_metadata(rule("64:ff9b::a9fe:a9fe")));
    CHECK_FALSE(covers(rule("64::/16"), rule("64:ff9b::a9fe:a9fe"))); // so nobody grants it by a range
    CHECK_FALSE(covers(rule("169.254.0.0/16"), rule("64:ff9b::a9fe:a9fe")));
    for (const char *text : {"64:ff9b::/96", "64:ff9b::a9fe:0/112", "[64:ff9b::/97]:80"})
        CHECK_MESSAGE(says(text, "write the range as IPv4"), text);
}

TEST_CASE("what leads to the host's own loopback is known by its text")
{
    for (const char *text : {"localhost", "localhost:5432", "app.localhost", "127.0.0.1", "127.9.9.9:80", "::1", "[::1]:80"})
        CHECK_MESSAGE(is_loopback(rule(text)), text);
    for (const char *text : {"localhost.example", "alocalhost", "128.0.0.1", "::2", "a.example", "*.example"})
        CHECK_FALSE_MESSAGE(is_loopback(rule(text)), text);
    CHECK((is_address(rule("10.0.0.1")) && is_address(rule("::1")) && !is_address(rule("a.example"))));
}

TEST_CASE("what people ask about is one host with a port, however it is copied")
{
    const auto asked = [](const std::string &text) {
        const auto one = parse_host_question(text);
        return one ? one->host + " " + std::to_string(one->port) : "none";
    };
    CHECK(asked("GitHub.com.") == "github.com 443");
    CHECK(asked("github.com:22") == "github.com 22");
    CHECK(asked("HTTPS://u:p@api.example/v1?x=:1#y") == "api.example 443");
    CHECK(asked("http://a.example") == "a.example 80");
    CHECK(asked("wss://a.example:8080/") == "a.example 8080");
    CHECK(asked("ssh://git@github.com/owner") == "github.com 22");
    CHECK(asked("[FD00::5]:80") == "fd00::5 80");
    CHECK(asked("fd00:0::5") == "fd00::5 443");
    CHECK(asked("postgres://db.example:5432/x") == "db.example 5432");
    CHECK(asked("[::ffff:10.0.0.1]:80") == "10.0.0.1 80");
    CHECK(asked("64:ff9b::a00:5") == "64:ff9b::a00:5 443");
    CHECK(asked("-a.example") == "-a.example 443"); // as the gate has it: some have such names
    for (const char *text : {"", ".", "*.a.example", "a b", "10.0.0.0/8", "a.example:", "a.example:0", "a.example:080", "127.1", "1.2.3.4.",
                             "[a.example]:80", "https://", "ftp://a.example", "a..", "fe80::1%eth0"})
        CHECK_MESSAGE(asked(text) == "none", text);
    CHECK(asked(std::string("10.0.0.1\0", 9)) == "none");
}

} // namespace host_rule_test

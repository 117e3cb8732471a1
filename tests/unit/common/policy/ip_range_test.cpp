// Ranges of addresses as an administrator writes them: common/policy/host_rule.hpp
#include "common/policy/host_rule.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace ip_range_test {

namespace {

// As it is understood, or what is wrong with it.
std::string read(const std::string &text)
{
    const auto parsed = parse_ip_range(text);
    if (const auto *problem = std::get_if<TextProblem>(&parsed)) return problem->text + "; " + problem->remedy;
    return to_string(std::get<IpRange>(parsed));
}

bool says(const std::string &text, const std::string &part)
{
    return read(text).find(part) != std::string::npos;
}

} // namespace

TEST_CASE("ranges of both families are understood, and written as everybody writes them")
{
    for (const char *text :
         {"10.0.0.0/8", "192.0.2.7/32", "128.0.0.0/1", "172.16.0.0/12", "fd00::/8", "2001:db8::1/128", "8000::/1", "::1/128"})
        CHECK(read(text) == text);
    CHECK(read("2001:0DB8:0:0::/64") == "2001:db8::/64");
    const auto parsed = parse_ip_range("10.128.0.0/9");
    const auto &range = std::get<IpRange>(parsed);
    CHECK((range.address == std::vector<std::uint8_t>{10, 128, 0, 0} && range.prefix == 9 && !range.is_v6()));
    CHECK(std::get<IpRange>(parse_ip_range("fd00::/8")).is_v6());
}

TEST_CASE("ranges overlap when one holds the other, whichever is the larger")
{
    const auto range = [](const char *text) { return std::get<IpRange>(parse_ip_range(text)); };
    const IpRange loopback = range("127.0.0.0/8");
    for (const char *text : {"127.0.0.0/8", "127.0.0.1/32", "126.0.0.0/7", "0.0.0.0/1"})
        CHECK_MESSAGE((overlap(range(text), loopback) && overlap(loopback, range(text))), text);
    for (const char *text : {"126.0.0.0/8", "128.0.0.0/1", "::/1", "7f00::/8"})
        CHECK_FALSE_MESSAGE(overlap(range(text), loopback), text);
    CHECK(overlap(range("::/1"), range("::1/128")));
    CHECK_FALSE(overlap(range("8000::/1"), range("::1/128")));
}

TEST_CASE("one address is a range with its whole length, and the remedy says so")
{
    CHECK(read("192.0.2.7") == "has no prefix length; write 192.0.2.7/32 for this one address");
    CHECK(read("::1") == "has no prefix length; write ::1/128 for this one address");
}

TEST_CASE("bits beyond the prefix are refused with what may be meant")
{
    CHECK(read("10.1.2.3/8") == "has bits beyond its prefix length; write 10.0.0.0/8, or 10.1.2.3/32 for this one address");
    CHECK(read("10.0.0.1/31") == "has bits beyond its prefix length; write 10.0.0.0/31, or 10.0.0.1/32 for this one address");
    CHECK(read("2001:db8::1/127") == "has bits beyond its prefix length; write 2001:db8::/127, or 2001:db8::1/128 for this one address");
}

TEST_CASE("a range that is every address, and the words of systemd and of this key, are pointed to what they mean")
{
    for (const char *text : {"0.0.0.0/0", "::/0", "any", "full"})
        CHECK_MESSAGE(says(text, "say 'network: full'"), text);
    CHECK(says("none", "say 'network: none', without a list"));
    CHECK(says("localhost", "write 127.0.0.0/8 and \"::1/128\""));
}

TEST_CASE("IPv4 in the form of IPv6 would match nothing")
{
    CHECK(says("::ffff:10.0.0.0/104", "write it as IPv4"));
    CHECK(says("::ffff:0:0/96", "write it as IPv4"));
}

TEST_CASE("everything else is no range: names, other notations, odd numbers")
{
    for (const char *text : {"", "/", "/8", "example.org", "example.org/24", "10/8", "010.0.0.0/8", "10.0.0/24", "10.0.0.0.0/8",
                             "0x0a000000/8", " 10.0.0.0/8", "10.0.0.0 /8", "fe80::%eth0/64", "1::2::3/64", "256.0.0.0/8", "[::1]/128"})
        CHECK_MESSAGE(says(text, "is not a range of IP addresses"), text);
    for (const char *text : {"10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/-8", "10.0.0.0/8 ", "10.0.0.0/8/8",
                             "10.0.0.0/255.0.0.0", "::1/129", "10.0.0.0/4294967304"})
        CHECK_MESSAGE(says(text, "has a prefix length that is not a number from 1 to"), text);
    CHECK(says(std::string("10.0.0.0\0/8", 11), "is not a range of IP addresses"));
}

} // namespace ip_range_test

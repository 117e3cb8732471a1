// Questions to a session's name server: gate/gate.hpp
#include "gate/gate.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace dns_message_test {

namespace {

constexpr unsigned a = 1;
constexpr unsigned aaaa = 28;

std::string two(unsigned value)
{
    return {static_cast<char>(value >> 8U), static_cast<char>(value & 0xffU)};
}

std::string labels(std::string_view name)
{
    std::string bytes;
    while (!name.empty()) {
        const std::string_view label = name.substr(0, name.find('.'));
        bytes += static_cast<char>(label.size()) + std::string(label);
        name.remove_prefix(std::min(label.size() + 1, name.size()));
    }
    return bytes + std::string(1, '\0');
}

std::string question(std::string_view name, unsigned type, unsigned flags = 0x0100, const std::string &more = {}, unsigned in_class = 1)
{
    return "id" + two(flags) + two(1) + two(0) + two(0) + two(more.empty() ? 0 : 1) + labels(name) + two(type) + two(in_class) + more;
}

std::string opt(unsigned version = 0, const std::string &options = {})
{
    return std::string(1, '\0') + two(41) + two(4096) + std::string{0, static_cast<char>(version)} + two(0) +
           two(static_cast<unsigned>(options.size())) + options;
}

unsigned result_of(const std::string &answer)
{
    return answer.size() < 12 ? 99 : static_cast<unsigned char>(answer[3]) & 0xfU;
}

unsigned count_of(const std::string &answer)
{
    return answer.size() < 12 ? 99 : static_cast<unsigned char>(answer[7]);
}

// The last bytes of the one answer.
std::string address_in(const std::string &answer, std::size_t size)
{
    return count_of(answer) == 1 ? answer.substr(answer.size() - size) : "";
}

std::string ask(const std::string &bytes, bool has_v6 = true)
{
    static NameTable names;
    return answer_dns(bytes, names, has_v6);
}

} // namespace

TEST_CASE("a name that is known not to exist has no address, and localhost always has one")
{
    NameTable names;
    const std::string gone = answer_dns(question("gone.example", a), names, true, false);
    CHECK(count_of(gone) == 0);
    CHECK((static_cast<unsigned char>(gone[3]) & 0xfU) == 3);
    CHECK(count_of(answer_dns(question("localhost", a), names, true, false)) == 1);
}

TEST_CASE("each name has an address of both families, always the same, and no two names share one")
{
    NameTable names;
    const std::string first = answer_dns(question("api.example.org", a), names, true);
    CHECK(address_in(first, 4) == std::string("\xc6\x12\0\x01", 4));
    CHECK(answer_dns(question("API.Example.ORG", a), names, true).substr(12 + 17 + 4) ==
          first.substr(12 + 17 + 4)); // the question as it was
    CHECK(address_in(answer_dns(question("b.example", a), names, true), 4) == std::string("\xc6\x12\0\x02", 4));
    const std::string six = address_in(answer_dns(question("api.example.org", aaaa), names, true), 16);
    REQUIRE(six.size() == 16);
    CHECK(six.substr(12) == std::string("\xc6\x12\0\x01", 4));
    boost::asio::ip::address_v6::bytes_type bytes{};
    std::copy(six.begin(), six.end(), bytes.begin());
    CHECK(names.name_of(boost::asio::ip::address_v6(bytes)) == "api.example.org");
    CHECK(names.name_of(boost::asio::ip::make_address("198.18.0.2")) == "b.example");
    CHECK(names.name_of(boost::asio::ip::make_address("::ffff:198.18.0.2")) == "b.example");
    CHECK(names.name_of(boost::asio::ip::make_address("198.18.0.3")).empty());
    CHECK(names.name_of(boost::asio::ip::make_address("198.20.0.1")).empty());
    CHECK(NameTable::is_synthetic(boost::asio::ip::make_address("198.19.255.255")));
    CHECK_FALSE(NameTable::is_synthetic(boost::asio::ip::make_address("fd00::c612:1")));
}

TEST_CASE("an answer has its question, says that recursion is there, and is no error")
{
    const std::string asked = question("a.example", a);
    const std::string answer = ask(asked);
    CHECK(answer.substr(0, 2) == "id");
    CHECK(answer.substr(2, 2) == two(0x8180));
    CHECK(answer.substr(12, asked.size() - 12) == asked.substr(12));
    CHECK(count_of(answer) == 1);
}

TEST_CASE("there is no record of another type, and none of IPv6 where the session has none")
{
    for (const unsigned type : {64U, 65U, 5U, 15U, 16U, 33U, 12U, 255U}) {
        CHECK(result_of(ask(question("a.example", type))) == 0);
        CHECK(count_of(ask(question("a.example", type))) == 0);
    }
    CHECK(count_of(ask(question("a.example", aaaa), false)) == 0);
    CHECK(result_of(ask(question("a.example", aaaa), false)) == 0);
    CHECK(count_of(ask(question("", 2))) == 0);
}

TEST_CASE("localhost is the session's own")
{
    CHECK(address_in(ask(question("localhost", a)), 4) == std::string("\x7f\0\0\x01", 4));
    CHECK(address_in(ask(question("x.localhost", aaaa)), 16) == std::string(15, '\0') + "\x01");
}

TEST_CASE("what is not a name has no address")
{
    for (const std::string_view name : {"1.2.3.4", "a b", "0x7f.1", "*.a", "a\n"})
        CHECK(result_of(ask(question(name, a))) == 3);
}

TEST_CASE("a question with EDNS gets an answer with it")
{
    const std::string answer = ask(question("a.example", a, 0x0100, opt()));
    CHECK(answer.substr(answer.size() - 11) == std::string(1, '\0') + two(41) + two(1232) + two(0) + two(0) + two(0));
    CHECK(count_of(answer) == 1);
    CHECK(count_of(ask(question("a.example", a, 0x0100,
                                opt(0, std::string("\0\x0a\0\x08"
                                                   "12345678",
                                                   12))))) == 1); // a cookie
    const std::string other = ask(question("a.example", a, 0x0100, opt(1)));
    CHECK(count_of(other) == 0);
    CHECK(other.substr(other.size() - 6, 2) == two(0x0100)); // BADVERS
}

TEST_CASE("what nobody asks well is dropped")
{
    const std::string whole = question("a.example", a, 0x0100, opt());
    for (std::size_t length = 0; length < whole.size(); ++length)
        REQUIRE(ask(whole.substr(0, length)).empty());
    CHECK(ask(whole + "x").empty());
    CHECK(ask(question("a.example", a, 0x8100)).empty()); // an answer
    CHECK(ask(question("a.example", a) + std::string(1300, 'x')).empty());
    std::string pointer = question("a.example", a);
    pointer[12] = '\xc0';
    CHECK(ask(pointer).empty());
    std::string two_questions = question("a.example", a);
    two_questions[5] = 2;
    CHECK(ask(two_questions).empty());
    CHECK(ask("id" + two(0x0100) + two(1) + two(0) + two(0) + two(0) +
              "\x03"
              "a.b" +
              std::string(1, '\0') + two(a) + two(1))
              .empty());
    std::string long_name;
    for (int count = 0; count < 5; ++count)
        long_name += std::string(60, 'a') + ".";
    CHECK(ask(question(long_name, a)).empty());
}

TEST_CASE("an unknown operation or class is refused in so many words")
{
    CHECK(result_of(ask(question("a.example", a, 0x2100))) == 4);
    CHECK(result_of(ask(question("a.example", a, 0x0100, {}, 3))) == 5);
}

TEST_CASE("the table forgets the oldest names, and gives their addresses to nobody soon")
{
    NameTable names;
    const auto first = names.addresses_of("first.example");
    for (std::size_t count = 0; count < name_table_limit; ++count)
        names.addresses_of("n" + std::to_string(count) + ".example");
    CHECK(names.name_of(first.v4).empty());
    CHECK(names.addresses_of("first.example").v4 != first.v4);
    CHECK(names.name_of(first.v4).empty());
    CHECK(names.name_of(names.addresses_of("n8000.example").v6) == "n8000.example");
    for (std::size_t count = 0; count < (1U << 17U); ++count)
        names.addresses_of("m" + std::to_string(count) + ".example");
    CHECK(names.name_of(names.addresses_of("m131071.example").v4) == "m131071.example");
}

} // namespace dns_message_test

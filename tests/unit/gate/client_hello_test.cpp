// ClientHellos as programs send them, and as nobody but an attacker does: gate/rules.hpp
#include "gate/rules.hpp"

#include "gate/hello_maker.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace client_hello_test {

namespace {

HelloState state_of(std::string_view bytes)
{
    return read_client_hello(bytes).state;
}

HelloState state_with(std::string_view extensions)
{
    return state_of(in_records(hello_message(extensions), 16'384));
}

} // namespace

TEST_CASE("the name in a ClientHello of OpenSSL is found")
{
    const ClientHello hello = read_client_hello(hello_of_openssl());
    CHECK(hello.state == HelloState::whole);
    CHECK(hello.name == "api.example.org");
    CHECK_FALSE(hello.has_encrypted_name);
}

TEST_CASE("a ClientHello that is not whole says how much more it needs, and never more than it has")
{
    const std::string whole = hello_of_openssl();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const ClientHello hello = read_client_hello(std::string_view(whole).substr(0, length));
        REQUIRE(hello.state == HelloState::incomplete);
        REQUIRE(hello.needed > length);
        REQUIRE(hello.needed <= whole.size());
    }
}

TEST_CASE("a ClientHello in many small records is read as one")
{
    const std::string message = hello_message(extension(51, std::string(1200, 'k')) + server_name("late.example"));
    for (const std::size_t size : {1UL, 3UL, 4UL, 5UL, 100UL, 1300UL}) {
        const ClientHello hello = read_client_hello(in_records(message, size));
        CHECK(hello.state == HelloState::whole);
        CHECK(hello.name == "late.example");
    }
}

TEST_CASE("a ClientHello may be longer than one record, and not longer than the limit")
{
    CHECK(state_of(in_records(hello_message(extension(51, std::string(20'000, 'k')) + server_name("a.example")), 16'384)) ==
          HelloState::whole);
    CHECK(state_of(in_records(hello_message(extension(51, std::string(40'000, 'k'))), 16'384)) == HelloState::malformed);
    CHECK(state_of(in_records(std::string(40'000, '\x01'), 1)) == HelloState::malformed);
}

TEST_CASE("what is no TLS is told from what is broken TLS")
{
    for (const std::string_view text :
         {"GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x80\x2e\x01\x03\x01", "\x15\x02\x01", "\x13\x03", "\x19\x03", "\x16\x02"})
        CHECK(state_of(text) == HelloState::not_tls);
    for (const auto &bytes : {std::string("\x16\x03\x01\0\0", 5), std::string("\x16\x03\x01\x40\x01", 5),
                              in_records("\x02" + hello_message("").substr(1), 16'384), in_records(hello_message("") + "x", 16'384),
                              in_records("\x01\0\0", 2) + "\x15\x03\x01", std::string("\x14\x03"), std::string("\x15\x03"),
                              std::string("\x17\x03"), std::string("\x18\x03")})
        CHECK(state_of(bytes) == HelloState::malformed);
}

TEST_CASE("one byte that may begin a record of TLS is waited for")
{
    for (const std::string_view text : {"\x14", "\x15", "\x16", "\x17", "\x18"})
        CHECK(state_of(text) == HelloState::incomplete);
}

TEST_CASE("a ClientHello with two names, or one in two places, is malformed")
{
    CHECK(state_with(server_name("a.example")) == HelloState::whole);
    CHECK(state_with(server_name("a.example") + server_name("a.example")) == HelloState::malformed);
    const std::string two = std::string(1, '\0') + counted(2, "a.example") + std::string(1, '\0') + counted(2, "b.example");
    CHECK(state_with(extension(0, counted(2, two))) == HelloState::malformed);
    CHECK(state_with(extension(0, counted(2, std::string(1, '\x01') + counted(2, "a.example")))) == HelloState::malformed);
    CHECK(state_with(extension(0, "")) == HelloState::malformed);
    CHECK(state_with(extension(0, counted(2, std::string(1, '\0') + counted(2, "")))) == HelloState::malformed);
    CHECK(state_with(extension(0, counted(2, std::string(1, '\0') + counted(2, "a.example")) + "x")) == HelloState::malformed);
}

TEST_CASE("an encrypted name is seen, a fake one as well")
{
    for (const unsigned kind : {0xfe0dU, 0xffceU}) {
        const ClientHello hello = read_client_hello(in_records(hello_message(server_name("a.example") + extension(kind, "x")), 16'384));
        CHECK(hello.state == HelloState::whole);
        CHECK(hello.has_encrypted_name);
    }
    CHECK(state_with(extension(0xfd00, "x")) == HelloState::malformed);
}

TEST_CASE("a ClientHello without a name has none")
{
    CHECK_FALSE(read_client_hello(in_records(hello_message(""), 16'384)).name);
    CHECK(state_of(in_records(hello_message("", false), 16'384)) == HelloState::whole);
}

TEST_CASE("lengths inside a ClientHello are exact")
{
    const std::string message = hello_message(server_name("a.example"));
    // Of the session id, the ciphers, the compression, all extensions, the first one, its list, and its name.
    for (const std::size_t at : {38U, 71U, 72U, 77U, 79U, 80U, 83U, 84U, 85U, 86U, 88U, 89U}) {
        std::string other = message;
        other[at] = static_cast<char>(other[at] ^ 0x40);
        CHECK_MESSAGE(state_of(in_records(other, 16'384)) == HelloState::malformed, at);
    }
    CHECK(state_of(in_records(hello_message(server_name("a.example") + "\x01"), 16'384)) == HelloState::malformed);
}

TEST_CASE("an alert is one record")
{
    CHECK(write_alert(Alert::access_denied) == std::string("\x15\x03\x03\0\x02\x02\x31", 7));
}

} // namespace client_hello_test

// What the first bytes of a connection say, against the host that it was opened to: gate/rules.hpp
#include "gate/rules.hpp"

#include "gate/hello_maker.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace first_bytes_test {

namespace {

using State = FirstBytes::State;

FirstBytes judge(std::uint16_t port, std::string_view bytes, const char *named = "a.example")
{
    return judge_first_bytes(speech_of_port(port), named == nullptr ? std::nullopt : read_host(named), port, bytes);
}

std::string reason(std::uint16_t port, std::string_view bytes, const char *named = "a.example")
{
    const FirstBytes first = judge(port, bytes, named);
    return first.state == State::refused ? text_of(first.reason).word : first.state == State::passes ? "passes" : "incomplete";
}

std::string request(std::string_view host, std::string_view first = "GET / HTTP/1.1", std::string_view more = "")
{
    return std::string(first) + "\r\nHost: " + std::string(host) + "\r\n" + std::string(more) + "\r\n";
}

bool is_malformed(std::string_view head)
{
    try {
        static_cast<void>(read_request_head(head));
    } catch (const RequestRefusal &) {
        return true;
    }
    return false;
}

std::string plain(std::string_view head, bool at_proxy = true)
{
    try {
        const RequestHead read = read_request_head(head);
        return write_plain_request(read, read_plain_request(read, at_proxy, 80));
    } catch (const RequestRefusal &) {
        return "malformed";
    }
}

} // namespace

TEST_CASE("a request that opens a WebSocket keeps what opens it, and nothing else is one")
{
    const std::string opens =
        "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n";
    const std::string whole = "GET /x HTTP/1.1\r\nHost: a.example\r\n" + opens + "\r\n";
    const FirstBytes first = judge(80, whole);
    CHECK(first.is_upgrade);
    CHECK(first.further == 0);
    CHECK(first.forward.find("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n") != std::string::npos);
    CHECK(first.forward.find("keep-alive") == std::string::npos);
    for (const char *without :
         {"Upgrade: websocket\r\n", "Sec-WebSocket-Key: eA==\r\n", "Sec-WebSocket-Version: 13\r\n", "keep-alive, Upgrade"}) {
        std::string other = whole;
        other.erase(other.find(without), std::string_view(without).size());
        CHECK_MESSAGE(!judge(80, other).is_upgrade, without);
        CHECK_MESSAGE(judge(80, other).forward.find("Upgrade: websocket") == std::string::npos, without);
    }
    std::string posted = whole;
    CHECK_FALSE(judge(80, posted.replace(0, 3, "POST")).is_upgrade);
}

TEST_CASE("TLS at its port needs the name that the connection was opened to")
{
    CHECK(reason(443, hello_for("a.example")) == "passes");
    CHECK(reason(443, hello_for("A.Example")) == "passes");
    CHECK(reason(443, hello_for("b.example")) == "other-name");
    CHECK(reason(443, hello_for("10.0.0.1")) == "malformed");
    CHECK(reason(443, hello_for("a b")) == "malformed");
    CHECK(reason(443, in_records(hello_message(""), 16'384)) == "no-name");
    CHECK(reason(443, in_records(hello_message(server_name("a.example") + extension(0xfe0d, "x")), 16'384)) == "encrypted-name");
    CHECK(reason(443, "GET / HTTP/1.1\r\n") == "not-tls");
    CHECK(reason(443, "SSH-2.0-x") == "not-tls");
    CHECK(reason(443, hello_for("a.example").substr(0, 20)) == "incomplete");
    CHECK(judge(443, hello_for("b.example"), nullptr).said->text == "b.example");
}

TEST_CASE("a ClientHello passes as it came, with what follows it kept for later")
{
    const std::string hello = in_records(hello_message(server_name("a.example")), 7);
    CHECK(judge(443, hello).forward == hello);
    CHECK(judge(443, hello).further == without_end);
}

TEST_CASE("at another port anything passes but a ClientHello with another name")
{
    CHECK(reason(22, "SSH-2.0-x\r\n") == "passes");
    CHECK(reason(5432, std::string("\0\0\0\x08", 4)) == "passes");
    CHECK(reason(8443, hello_for("a.example")) == "passes");
    CHECK(reason(8443, hello_for("b.example")) == "other-name");
    CHECK(reason(8443, in_records(hello_message(""), 16'384)) == "passes");
    CHECK(reason(8443, "\x16") == "incomplete");
    CHECK(reason(8443, std::string("\x14\x03\x03\0\1\1", 6) + hello_for("b.example")) == "malformed"); // a server skips the first record
    CHECK(reason(8443, std::string("\x15\x03\x01\0\2\1\0", 7) + hello_for("a.example")) == "malformed");
    CHECK(reason(8443, in_records(hello_message(server_name("a.example") + extension(0xfe0d, "x")), 16'384)) == "encrypted-name");
}

TEST_CASE("plain HTTP needs the name that the connection was opened to, and one request goes on")
{
    CHECK(reason(80, request("a.example")) == "passes");
    CHECK(reason(80, request("A.example:80")) == "passes");
    CHECK(reason(80, request("a.example:8080")) == "other-name");
    CHECK(reason(80, request("b.example")) == "other-name");
    CHECK(reason(80, "GET / HTTP/1.1\r\n\r\n") == "malformed");
    CHECK(reason(80, request("a.example", "GET http://b.example/ HTTP/1.1")) == "malformed");
    CHECK(reason(80, request("a.example", "CONNECT a.example:80 HTTP/1.1")) == "malformed");
    CHECK(reason(80, request("a.example", "GET / HTTP/1.1", "Host: b.example\r\n")) == "malformed");
    CHECK(reason(80, "SSH-2.0-x\r\n") == "not-http");
    CHECK(reason(80, hello_for("a.example")) == "not-http");
    CHECK(reason(80, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == "malformed");
    CHECK(reason(80, std::string(40, 'A')) == "not-http");
    CHECK(reason(80, "GET / HTTP/1.1\r\nHost: a.exam") == "incomplete");
    CHECK(reason(80, "GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x')) == "malformed");
    const FirstBytes first = judge(80, request("a.example") + request("b.example"));
    CHECK(first.forward == "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    CHECK(first.further == 0);
    const FirstBytes posted = judge(80, request("a.example", "POST /x?y HTTP/1.1", "Content-Length: 10\r\n") + "12345");
    CHECK(posted.forward.ends_with("\r\n\r\n12345"));
    CHECK(posted.further == 5);
}

TEST_CASE("a request at the proxy is written anew for its server alone")
{
    CHECK(plain("GET http://A.example/p?q HTTP/1.0\r\nAccept: x\r\nProxy-Authorization: y\r\nKeep-Alive: 5\r\nConnection: keep-alive, "
                "X-Y\r\nX-y: 1\r\n\r\n") == "GET /p?q HTTP/1.0\r\nHost: a.example\r\nAccept: x\r\nConnection: close\r\n\r\n");
    CHECK(plain("GET http://a.example HTTP/1.1\r\nHost: a.example\r\n\r\n").starts_with("GET / HTTP/1.1\r\nHost: a.example\r\n"));
    CHECK(plain("GET http://a.example?q HTTP/1.1\r\n\r\n").starts_with("GET /?q HTTP/1.1\r\n"));
    CHECK(plain("GET http://[2001:db8::1]:8080/ HTTP/1.1\r\n\r\n").find("Host: [2001:db8::1]:8080\r\n") != std::string::npos);
    CHECK(plain("POST http://a.example/ HTTP/1.1\r\nContent-Length: 5\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nTE: trailers\r\n\r\n") ==
          "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
}

TEST_CASE("a request that two readers could understand differently is malformed")
{
    for (const char *head :
         {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
          "GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "GET ftp://a.example/ HTTP/1.1\r\n\r\n",
          "GET http:///x HTTP/1.1\r\n\r\n", "GET http://u@a.example/ HTTP/1.1\r\n\r\n", "GET http://a.example\\b/ HTTP/1.1\r\n\r\n",
          "GET http://a.example/#x HTTP/1.1\r\n\r\n", "GET http://127.1/ HTTP/1.1\r\n\r\n",
          "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
          "POST http://a.example/ HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
          "POST http://a.example/ HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
          "POST http://a.example/ HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n",
          "POST http://a.example/ HTTP/1.1\r\nContent-Length: 9999999999999999\r\n\r\n", "TRACE http://a.example/ HTTP/1.1\r\n\r\n"})
        CHECK_MESSAGE(plain(head) == "malformed", head);
}

TEST_CASE("a head is read in one way only")
{
    for (const char *head : {"GET / HTTP/1.1\r\nA : b\r\n\r\n", "GET / HTTP/1.1\r\n b: c\r\n\r\n", "GET / HTTP/1.1\r\nA\r\n\r\n",
                             "GET / HTTP/1.1\r\n: b\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n",
                             "GET / HTTP/2.0\r\n\r\n", "GET /\r\n\r\n", "GET\t/ HTTP/1.1\r\n\r\n", "\r\n\r\n", "G(T / HTTP/1.1\r\n\r\n",
                             "GET / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n", "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
                             "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", "GET / HTTP/1.1\r\n\r\nx"})
        CHECK_MESSAGE(is_malformed(head), head);
    CHECK(is_malformed(std::string("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 26)));
    CHECK_FALSE(is_malformed("GET / HTTP/1.1\r\nA:\r\nB: \t x \t\r\n\r\n"));
}

TEST_CASE("a tunnel says host and port")
{
    const auto target = [](const std::string &text) {
        const auto one = connect_target(read_request_head("CONNECT " + text + " HTTP/1.1\r\n\r\n"));
        return one ? one->host.text + " " + std::to_string(one->port) : "none";
    };
    CHECK(target("a.example:443") == "a.example 443");
    CHECK(target("[::1]:443") == "::1 443");
    for (const char *text : {"a.example", "http://a.example:443", "a.example:443/", "a.example:", "u@a.example:443", "127.1:443", "/"})
        CHECK(target(text) == "none");
}

TEST_CASE("a refusal comes in the language of the connection")
{
    CHECK(refusal_in(Speech::any, DenialReason::no_rule, "x").empty());
    CHECK(refusal_in(Speech::tls, DenialReason::no_rule, "x") == write_alert(Alert::access_denied));
    CHECK(refusal_in(Speech::tls, DenialReason::other_name, "x") == write_alert(Alert::unrecognized_name));
    const std::string answer = refusal_in(Speech::http, DenialReason::no_rule, "x");
    CHECK(answer.starts_with("HTTP/1.1 403 "));
    CHECK(answer.find("\r\nx-pi-agent-denied: no-rule\r\n") != std::string::npos);
    CHECK(answer.ends_with("\r\n\r\npi-agent: x\n"));
    CHECK(refusal_in(Speech::http, {}, "x").find("x-pi-agent-denied") == std::string::npos);
}

} // namespace first_bytes_test

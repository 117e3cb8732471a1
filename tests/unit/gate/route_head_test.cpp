// Heads of requests and answers at the reverse route: gate/gate.hpp
#include "gate/gate.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>

using namespace pi_agent;

namespace route_head_test {

namespace {

const GateProvider &provider()
{
    static const GateProvider known{
        "api.openai.com", "authorization", "Bearer ", "sk-secret", {"POST", "WEBSOCKET"}, {"/v1/responses", "/v1/responses"}, "p:1"};
    return known;
}

// What the provider would get, or "STATUS: why not".
std::string sent(const std::string &head)
{
    try {
        const auto parser = std::make_unique<RequestParser>();
        const RouteRequest request = read_request_head(head, *parser);
        return std::string(write_request_head(request, *parser, provider()).text());
    } catch (const RequestRefusal &refusal) {
        return std::to_string(refusal.status) + ": " + refusal.what();
    }
}

std::string post(const std::string &fields)
{
    return "POST /api.openai.com/v1/responses HTTP/1.1\r\nHost: 127.0.0.1:809\r\n" + fields + "\r\n";
}

bool is_refused(const std::string &head)
{
    const std::string result = sent(head);
    return result.size() > 4 && result.substr(3, 2) == ": ";
}

std::string answered(const std::string &head, bool websocket = false)
{
    try {
        AnswerParser parser;
        const auto body = read_answer_head(head, parser, websocket);
        return body ? std::to_string(static_cast<int>(*body)) + " " + write_answer_head(parser, *body) : "between";
    } catch (const RequestRefusal &refusal) {
        return refusal.what();
    }
}

} // namespace

TEST_CASE("a request gets the provider's host and key, and loses whatever else could be one")
{
    CHECK(sent(post("Authorization: Bearer mine\r\nX-Api-Key: mine\r\nx_api_key: mine\r\napi-key: mine\r\nx-goog-api-key: mine\r\n"
                    "Proxy-Authorization: Basic mine\r\nCookie: mine\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
                    "X-HTTP-Method-Override: DELETE\r\nX-Forwarded-Host: evil\r\nX-Original-URL: /v1/files\r\nAccept: */*\r\n")) ==
          "POST /v1/responses HTTP/1.1\r\nhost: api.openai.com\r\nContent-Type: application/json\r\nAccept: */*\r\n"
          "content-length: 2\r\nconnection: close\r\nauthorization: Bearer sk-secret\r\n\r\n");
}

TEST_CASE("what is for the next station alone goes no further, whoever names it")
{
    CHECK(sent(post("Connection: keep-alive, X-Mine\r\nKeep-Alive: 5\r\nX-Mine: 1\r\nTE: trailers\r\nTrailer: X\r\nTransfer-Encoding: "
                    "Chunked\r\n")) ==
          "POST /v1/responses HTTP/1.1\r\nhost: api.openai.com\r\ntransfer-encoding: chunked\r\nconnection: close\r\n"
          "authorization: Bearer sk-secret\r\n\r\n");
    CHECK(sent(post("Connection: authorization\r\n")).find("authorization: Bearer sk-secret\r\n") != std::string::npos);
}

TEST_CASE("a request whose length two readers could see differently is refused")
{
    for (const std::string fields : {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                                     "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
                                     "Content-Length: 3\r\nContent-Length: 3\r\n",
                                     "Content-Length: 3\r\nContent-Length: 4\r\n",
                                     "Content-Length: 3, 3\r\n",
                                     "Content-Length: +3\r\n",
                                     "Content-Length: -3\r\n",
                                     "Content-Length: 0x3\r\n",
                                     "Content-Length: 3 4\r\n",
                                     "Content-Length:\r\n",
                                     "Content-Length: 3;\r\n",
                                     "Content-Length: 99999999999999999999\r\n",
                                     "Transfer-Encoding: identity\r\n",
                                     "Transfer-Encoding: chunked, identity\r\n",
                                     "Transfer-Encoding: identity, chunked\r\n",
                                     "Transfer-Encoding: gzip, chunked\r\n",
                                     "Transfer-Encoding: xchunked\r\n",
                                     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                                     "Transfer-Encoding: \x0b"
                                     "chunked\r\n",
                                     "Transfer-Encoding : chunked\r\n",
                                     "Transfer-Encoding\t: chunked\r\n",
                                     " Transfer-Encoding: chunked\r\n",
                                     "X: y\r\n Transfer-Encoding: chunked\r\n",
                                     "X: y\r\n\tz\r\n",
                                     "Transfer-Encoding:\r\n chunked\r\n",
                                     "X: y\nTransfer-Encoding: chunked\r\n",
                                     "X: y\rTransfer-Encoding: chunked\r\n",
                                     "X: y\r\r\nA: b\r\n",
                                     "Transfer_Encoding chunked\r\n",
                                     ": x\r\n",
                                     "X y: z\r\n",
                                     "Host: evil.example\r\n",
                                     "Expect: 100-continue, x\r\n",
                                     "Expect: 100-continue\r\nExpect: 100-continue\r\n",
                                     "Expect: 200-ok\r\n"})
        CHECK_MESSAGE(is_refused(post(fields)), fields);
    CHECK(is_refused(post(std::string("X: \0y\r\n", 7))));
    CHECK(is_refused(post("X: " + std::string(route_head_limit, 'y') + "\r\n")));
    std::string many;
    for (int field = 0; field < 200; ++field)
        many += "X" + std::to_string(field) + ": y\r\n";
    CHECK(is_refused(post(many)));
}

TEST_CASE("a first line that is not one of HTTP/1.1 is refused")
{
    for (const std::string line :
         {"POST /api.openai.com/v1/responses HTTP/1.0", "POST /api.openai.com/v1/responses HTTP/2.0", "POST /api.openai.com/v1/responses",
          "POST  /api.openai.com/v1/responses HTTP/1.1", "POST\t/api.openai.com/v1/responses HTTP/1.1",
          "POST /api.openai.com/v1/responses  HTTP/1.1", "POST /api.openai.com/v1/responses HTTP/1.1 ", "POST /a b HTTP/1.1",
          " POST /api.openai.com/v1/responses HTTP/1.1", "PO(ST /api.openai.com/v1/responses HTTP/1.1", "PRI * HTTP/2.0",
          "TRACE /api.openai.com/v1/responses HTTP/1.1", "CONNECT api.openai.com:443 HTTP/1.1", ""})
        CHECK_MESSAGE(is_refused(line + "\r\nHost: x\r\n\r\n"), line);
    CHECK(is_refused("POST /api.openai.com/v1/responses HTTP/1.1\r\n\r\n")); // no host
}

TEST_CASE("only a GET without a body becomes a WebSocket")
{
    const std::string get = "GET /api.openai.com/v1/responses HTTP/1.1\r\nHost: x\r\n";
    const std::string ask = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const std::string result = sent(get + ask + "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.mine\r\n\r\n");
    CHECK(result == "GET /v1/responses HTTP/1.1\r\nhost: api.openai.com\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nconnection: upgrade\r\n"
                    "upgrade: websocket\r\nauthorization: Bearer sk-secret\r\n\r\n");
    CHECK(is_refused(post(ask)));
    CHECK(is_refused(get + ask + "Content-Length: 0\r\n\r\n"));
    CHECK(is_refused(get + "Upgrade: websocket\r\n\r\n"));
    const auto begun = [&](const std::string &fields) {
        return sent(get + "Connection: Upgrade\r\nUpgrade: websocket\r\n" + fields + "\r\n");
    };
    const std::string version = "Sec-WebSocket-Version: 13\r\n";
    const auto key = [](const std::string &value) { return "Sec-WebSocket-Key: " + value + "\r\n"; };
    REQUIRE(begun(version + key("AAAAAAAAAAAAAAAAAAAAAA==")).starts_with("GET "));
    CHECK(begun("").starts_with("400: ")); // servers take it for a plain GET
    CHECK(begun(version).starts_with("400: "));
    CHECK(begun(key("AAAAAAAAAAAAAAAAAAAAAA==")).starts_with("400: "));
    CHECK(begun("Sec-WebSocket-Version: 8\r\n" + key("AAAAAAAAAAAAAAAAAAAAAA==")).starts_with("400: "));
    CHECK(begun(version + key("AAAAAAAAAAAAAAAAAAAAAA==") + key("AAAAAAAAAAAAAAAAAAAAAA==")).starts_with("400: "));
    for (const std::string value :
         {"", "abc", "AAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB==", "AAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAA===",
          "AAAAAAAAAA AAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAA==AAAAAAAAAAAAAAAAAAAAAA=="})
        CHECK_MESSAGE(begun(version + key(value)).starts_with("400: "), value);
    const std::string word = "WEBSOCKET /api.openai.com/v1/responses HTTP/1.1\r\nHost: x\r\n"; // ours, and no method of HTTP
    CHECK(sent(word + "Content-Length: 40\r\n\r\n").starts_with("405: "));
    CHECK(sent(word + ask + "\r\n").starts_with("405: "));
}

TEST_CASE("a WebSocket that is not opened is an error with the provider's status, if that is one of an error")
{
    const auto status = [](const std::string &line) {
        try {
            AnswerParser parser;
            (void)read_answer_head("HTTP/1.1 " + line + "\r\nContent-Length: 0\r\n\r\n", parser, true);
        } catch (const RequestRefusal &refusal) {
            CHECK(!refusal.reason); // nothing was denied
            return refusal.status;
        }
        return 0U;
    };
    CHECK(status("401 Unauthorized") == 401);
    CHECK(status("426 Upgrade Required") == 426);
    CHECK(status("503 Service Unavailable") == 503);
    CHECK(status("200 OK") == 502);
    CHECK(status("204 No Content") == 502);
    CHECK(status("307 Away") == 502);
    CHECK(status("799 Odd") == 502);
}

TEST_CASE("the route is for programs that ask at its own address, and for no page of a browser")
{
    const auto passes = [](const std::string &host, const std::string &fields = "") {
        const auto parser = std::make_unique<RequestParser>();
        (void)read_request_head("POST /h/x HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n", *parser);
        try {
            require_own_caller(*parser, 809);
            return true;
        } catch (const RequestRefusal &refusal) {
            CHECK((refusal.status == 403 && refusal.reason == DenialReason::other_page));
            return false;
        }
    };
    for (const std::string host : {"127.0.0.1:809", "localhost:809", "LocalHost:809", "[::1]:809"})
        CHECK_MESSAGE(passes(host), host);
    for (const std::string host : {"evil.example:809", "evil.example", "127.0.0.1", "localhost", "127.0.0.1:808", "127.0.0.2:809", "",
                                   "localhost:809.evil.example", "evil.localhost:809", "localhost.:809", "127.0.0.1:0809"})
        CHECK_MESSAGE(!passes(host), host);
    for (const std::string fields : {"Origin: http://127.0.0.1:809\r\nSec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n",
                                     "Sec-Fetch-Mode: cors\r\n"}) // node's fetch says the last
        CHECK_MESSAGE(passes("127.0.0.1:809", fields), fields);
    for (const std::string fields :
         {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin:\r\n", "Origin: http://localhost:3000\r\n",
          "Origin: https://127.0.0.1:809\r\n", "Origin: http://127.0.0.1:809.evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n",
          "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: other\r\n"})
        CHECK_MESSAGE(!passes("127.0.0.1:809", fields), fields);
    CHECK(is_refused(post("Origin: http://127.0.0.1:809\r\nOrigin: http://evil.example\r\n")));
}

TEST_CASE("who waits to send a body is known, and the provider hears nothing of it")
{
    const auto waits = [](const std::string &fields) {
        const auto parser = std::make_unique<RequestParser>();
        return read_request_head(post(fields), *parser).waits_to_send;
    };
    CHECK(waits("Content-Length: 2\r\nExpect: 100-Continue\r\n"));
    CHECK(waits("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"));
    CHECK_FALSE(waits("Expect: 100-continue\r\n")); // for nothing
    CHECK_FALSE(waits("Content-Length: 2\r\n"));
    CHECK(sent(post("Content-Length: 2\r\nExpect: 100-continue\r\n")) == sent(post("Content-Length: 2\r\n")));
}

TEST_CASE("an offer to change to another protocol is not taken, and goes no further")
{
    const std::string offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAA\r\n";
    CHECK(sent(post(offer + "Content-Length: 2\r\n")) ==
          "POST /v1/responses HTTP/1.1\r\nhost: api.openai.com\r\ncontent-length: 2\r\nconnection: close\r\n"
          "authorization: Bearer sk-secret\r\n\r\n");
    const std::string get = "GET /api.openai.com/v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ";
    for (const std::string protocol : {"h2c", "HTTP/2.0", "TLS/1.2", "websocket, h2c", "h2c, websocket", "websocket/13", ""})
        CHECK_MESSAGE(sent(get + protocol + "\r\n\r\n") == "GET /v1/responses HTTP/1.1\r\nhost: api.openai.com\r\nconnection: close\r\n"
                                                           "authorization: Bearer sk-secret\r\n\r\n",
                      protocol);
    CHECK(is_refused(post("Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n")));
}

TEST_CASE("a head is found where it ends, and refused where it cannot be one")
{
    CHECK(find_head("", route_head_limit) == 0);
    CHECK(find_head("GET / HTTP/1.1\r\nHost: x\r\n\r", route_head_limit) == 0);
    CHECK(find_head("GET / HTTP/1.1\r\nHost: x\r\n\r\nbody\n\n", route_head_limit) == 27);
    CHECK(find_head("GET / HTTP/1.1\r", route_head_limit) == 0);
    for (const std::string bytes : {"GET / HTTP/1.1\n", "GET / HTTP/1.1\rX", "\x16\x03\x01", "GET /\x7f"})
        CHECK_THROWS_AS(find_head(bytes, route_head_limit), RequestRefusal);
    CHECK_THROWS_AS(find_head(std::string(route_head_limit + 1, 'a'), route_head_limit), RequestRefusal);
}

TEST_CASE("an answer keeps its fields, and says anew how long it is")
{
    CHECK(answered("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b\r\nAlt-Svc: h3\r\n"
                   "Connection: x-gone\r\nX-Gone: 1\r\n\r\n") ==
          "2 HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    CHECK(answered("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n") ==
          "1 HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\nconnection: close\r\n\r\n");
    CHECK(answered("HTTP/1.0 200 OK\r\n\r\n") == "2 HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    CHECK(answered("HTTP/1.1 204 No Content\r\n\r\n") == "0 HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    CHECK(answered("HTTP/1.1 307 Away\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n")
              .find("Location: https://evil.example/") != std::string::npos);
    CHECK(answered("HTTP/1.1 103 Early Hints\r\n\r\n") == "between");
    CHECK(answered("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
                   true) ==
          "3 HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    CHECK(answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true) ==
          "the provider opened no WebSocket; it answered with the status 200");
    CHECK(answered("HTTP/1.1 103 Early Hints\r\n\r\n", true) == "between");
    for (const std::string head : {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
                                   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                                   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/2 200 OK\r\n\r\n",
                                   "ICY 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"})
        CHECK_MESSAGE(answered(head).find("HTTP/1.1 200") == std::string::npos, head);
}

TEST_CASE("a refusal is an answer that clients show, with its reason in a field")
{
    const std::string denied = write_refusal(RequestRefusal(403, DenialReason::other_path, "not for this path"));
    CHECK(denied.starts_with("HTTP/1.1 403 Forbidden\r\nx-pi-agent-denied: other-path\r\n"));
    CHECK(denied.find("\"message\":\"pi-agent: not for this path\"") != std::string::npos);
    CHECK(write_refusal(RequestRefusal(502, {}, "gone")).find("x-pi-agent-denied") == std::string::npos);
}

TEST_CASE("a text with a key neither moves nor stays")
{
    const std::string whole(100, 'k');
    SecretText secret(whole.size());
    secret.append(whole);
    CHECK_THROWS(secret.append(whole));
    CHECK(secret.text() == whole);
}

} // namespace route_head_test

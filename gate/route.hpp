// The reverse route: requests of a session to the providers of models, to which the gate adds the providers' keys.
#pragma once

#include "gate/gate.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace pi_agent {

// Where a request at the reverse route goes: the host in its path, and the rest, which can be read in one way only.

struct RouteTarget {
    std::string host;  // as the session wrote it
    std::string path;  // with which the lists are compared, and which is sent
    std::string query; // with its "?", without what could be a credential; or nothing
};

// From "/api.openai.com/v1/responses?x=y". Throws RequestRefusal.
RouteTarget read_route_target(std::string_view target);

// The method that lists have for a GET that becomes a WebSocket.
constexpr std::string_view websocket_method = "WEBSOCKET";

// The provider that takes this request. Throws RequestRefusal.
const GateProvider &choose_provider(const std::vector<GateProvider> &providers, std::string_view method, const RouteTarget &target);

// In a request: what could be somebody's key, or makes another request of it.
bool is_credential(std::string_view name, std::string_view value);

// The heads of requests and answers at the reverse route: read strictly, and written anew.

using RequestParser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
using AnswerParser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;

// A text that has a key in it. Its memory is overwritten when it goes; it is never copied, and never grows beyond what it reserved.
class SecretText {
public:
    explicit SecretText(std::size_t capacity) { text_.reserve(capacity); }
    SecretText(SecretText &&other) noexcept = default;
    SecretText(const SecretText &) = delete;
    SecretText &operator=(const SecretText &) = delete;
    SecretText &operator=(SecretText &&) = delete;
    ~SecretText();
    void append(std::string_view more);
    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string text_;
};

// What a request is, after its parser has read its head.
struct RouteRequest {
    std::string method; // "WEBSOCKET" for a GET that asks for one
    RouteTarget target;
    bool has_chunks = false;
    std::optional<std::uint64_t> length; // of the body, where the head says it
    bool waits_to_send = false;          // the body comes when somebody asks for it (100-continue)
};

// Puts a head that find_head() found into the parser and says what it asks for. Throws RequestRefusal.
RouteRequest read_request_head(std::string_view head, RequestParser &parser);

// A page in a browser of the session reaches the route as well: by a name of its own that leads there, or across sites. It is somebody
// else's, and its requests are not for the policy's key. Throws RequestRefusal for a host that is not the route's own address, at the port
// that was asked, and for an origin or a site that is another page's. `parser`: of read_request_head().
void require_own_caller(const RequestParser &parser, std::uint16_t port);

// The head that the provider gets: without what is for the next station alone, without any credential, and with the provider's key.
SecretText write_request_head(const RouteRequest &request, const RequestParser &parser, const GateProvider &provider);

// What becomes of an answer's body.
enum class AnswerBody {
    none,
    counted, // as many bytes as the head says
    chunks,  // also what ended with the connection
    tunnel,  // a WebSocket: bytes in both directions
};

// Puts the head of an answer into the parser. An answer in between (100, 103) has none, and another follows. Throws RequestRefusal: with a
// reason where the head cannot be read, and without one where the provider opened no WebSocket.
std::optional<AnswerBody> read_answer_head(std::string_view head, AnswerParser &parser, bool asked_for_websocket);

// The head that the session gets.
std::string write_answer_head(const AnswerParser &parser, AnswerBody body);

// A whole answer for a session that is refused something: JSON, as clients of these APIs show it.
std::string write_refusal(const RequestRefusal &refusal);

// TLS towards providers: whom it trusts, and for which name.

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

// TLS 1.2 at least, HTTP/1.1 alone, and certificates that the host trusts, or one of `authorities` (PEM) has signed. Throws Failure when
// these are no certificates.
boost::asio::ssl::context make_tls_context(const std::string &authorities);

// Before the handshake: the peer is asked for this host, and must show a certificate with its name. False without memory.
bool expect_host(TlsStream &stream, const std::string &host);

// After a handshake that failed: why the certificate is not trusted; empty where it failed otherwise.
std::string why_untrusted(TlsStream &stream);

// For Gate::serve_route; empty where the order has no provider. Borrows the order, whose keys and certificates it needs as long as it
// lives. http://127.0.0.1:PORT/api.openai.com/v1/responses becomes https://api.openai.com/v1/responses. One request for each connection, on
// both sides: no byte after a request's body counts.
std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order);

} // namespace pi_agent

// The heads of requests and answers at the reverse route: read strictly, and written anew.
#pragma once

#include "gate/route_target.hpp"

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

constexpr std::size_t route_head_limit = 64UL * 1024;

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

// How many of the bytes that came are the head of a message: 0 until it is whole. Throws RouteRefusal as soon as they cannot be the
// beginning of one.
std::size_t find_head(std::string_view bytes);

// A head that find_head() found, in bytes and rules: each line ends in CR LF and is a field with a name, no folded one, no field twice that
// says how long the body is or for whom it is. Throws RouteRefusal.
void require_strict_head(std::string_view head);

// What a request is, after its parser has read its head.
struct RouteRequest {
    std::string method; // "WEBSOCKET" for a GET that asks for one
    RouteTarget target;
    bool has_chunks = false;
    std::optional<std::uint64_t> length; // of the body, where the head says it
    bool waits_to_send = false;          // the body comes when somebody asks for it (100-continue)
};

// Puts the head into the parser and says what it asks for. Throws RouteRefusal.
RouteRequest read_request_head(std::string_view head, RequestParser &parser);

// A page in a browser of the session reaches the route as well: by a name of its own that leads there, or across sites. It is somebody
// else's, and its requests are not for the policy's key. Throws RouteRefusal for a host that is not the route's own address, at the port
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

// Puts the head of an answer into the parser. An answer in between (100, 103) has none, and another follows. Throws RouteRefusal: with a
// reason where the head cannot be read, and without one where the provider opened no WebSocket.
std::optional<AnswerBody> read_answer_head(std::string_view head, AnswerParser &parser, bool asked_for_websocket);

// The head that the session gets.
std::string write_answer_head(const AnswerParser &parser, AnswerBody body);

// A whole answer for a session that is refused something: JSON, as clients of these APIs show it.
std::string write_refusal(const RouteRefusal &refusal);

} // namespace pi_agent

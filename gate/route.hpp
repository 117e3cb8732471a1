// The reverse route: requests of a session to the providers of models, to which the gate adds the providers' keys.
#pragma once

#include "gate/gate.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

namespace pi_agent {

// Where a request at the reverse route goes: the host in its path, and the rest, which can be read in one way only.

// Why the route does not pass something on. What it says never has bytes of a key.
class RouteRefusal : public std::runtime_error {
public:
    RouteRefusal(unsigned http_status, std::optional<DenialReason> why, const std::string &said)
        : std::runtime_error(said), status(http_status), reason(why)
    {
    }
    unsigned status;                    // of HTTP
    std::optional<DenialReason> reason; // none: nothing was denied, the provider could not be asked
};

struct RouteTarget {
    std::string host;  // as the session wrote it
    std::string path;  // with which the lists are compared, and which is sent
    std::string query; // with its "?", without what could be a credential; or nothing
};

// From "/api.openai.com/v1/responses?x=y". Throws RouteRefusal.
RouteTarget read_route_target(std::string_view target);

// The method that lists have for a GET that becomes a WebSocket.
constexpr std::string_view websocket_method = "WEBSOCKET";

// The provider that takes this request. Throws RouteRefusal.
const GateProvider &choose_provider(const std::vector<GateProvider> &providers, std::string_view method, const RouteTarget &target);

// Which fields of a head the reverse route passes on, and which not.

// Whether a line of a head is the field `name`.
bool is_field(std::string_view line, std::string_view name) noexcept;

// For the next station alone: how the connection is used, or how the body's length is said. `named`: the message's field "connection".
bool is_for_next_station(std::string_view name, std::string_view named) noexcept;

// In a request: what could be somebody's key, or makes another request of it.
bool is_credential(std::string_view name, std::string_view value);

// In an answer: what would have no effect, or leads around the route.
bool is_of_no_use_inside(std::string_view name) noexcept;

// The heads of requests and answers at the reverse route: read strictly, and written anew.

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

// TLS towards providers: whom it trusts, and for which name.

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

// TLS 1.2 at least, HTTP/1.1 alone, and certificates that the host trusts, or one of `authorities` (PEM) has signed. Throws Failure when
// these are no certificates.
boost::asio::ssl::context make_tls_context(const std::string &authorities);

// Before the handshake: the peer is asked for this host, and must show a certificate with its name. False without memory.
bool expect_host(TlsStream &stream, const std::string &host);

// After a handshake that failed: why the certificate is not trusted; empty where it failed otherwise.
std::string why_untrusted(TlsStream &stream);

// Bodies of the reverse route: piece by piece, in one direction.

constexpr std::size_t route_piece = 16UL * 1024; // a record of TLS has no more

using ErrorCode = boost::system::error_code;

// What a piece of work on a connection needs: that the connection lives until it is done, and learns that something moved.
struct Keep {
    std::shared_ptr<void> alive;
    std::function<void()> moved;
};

// Sends on what comes of a message's body, as soon as it comes, in chunks or as it is. Reads the next piece when the last one is sent: who
// reads slowly slows the other side, and nothing gathers here.
template <typename From, typename To, typename Parser>
class BodyRelay {
public:
    // Whether reading or writing failed; both are good when the body ended as its head said.
    using Done = std::function<void(ErrorCode reading, ErrorCode writing)>;

    BodyRelay(From &from, To &to, boost::beast::flat_buffer &read_ahead, Parser &parser, bool in_chunks) noexcept
        : from_(from), to_(to), read_ahead_(read_ahead), parser_(parser), in_chunks_(in_chunks)
    {
    }

    void run(Keep keep, Done done)
    {
        keep_ = std::move(keep);
        done_ = std::move(done);
        next();
    }

private:
    void next()
    {
        if (parser_.is_done()) {
            end();
            return;
        }
        auto &body = parser_.get().body();
        body.data = piece_.data();
        body.size = piece_.size();
        body.more = true;
        boost::beast::http::async_read_some(from_, read_ahead_, parser_, [this, keep = keep_.alive](ErrorCode problem, std::size_t) {
            keep_.moved();
            if (problem && problem != boost::beast::http::error::need_buffer)
                finish(problem, {});
            else
                send(piece_.size() - parser_.get().body().size);
        });
    }

    void send(std::size_t size)
    {
        if (size == 0) {
            next();
            return;
        }
        const auto sent = [this, keep = keep_.alive](ErrorCode problem, std::size_t) {
            keep_.moved();
            if (problem)
                finish({}, problem);
            else
                next();
        };
        const boost::asio::const_buffer piece(piece_.data(), size);
        if (in_chunks_)
            boost::asio::async_write(to_, boost::beast::http::make_chunk(piece), sent);
        else
            boost::asio::async_write(to_, piece, sent);
    }

    void end()
    {
        if (!in_chunks_) {
            finish({}, {});
            return;
        }
        boost::asio::async_write(to_, boost::beast::http::make_chunk_last(),
                                 [this, keep = keep_.alive](ErrorCode problem, std::size_t) { finish({}, problem); });
    }

    void finish(ErrorCode reading, ErrorCode writing)
    {
        const Done done = std::exchange(done_, {});
        keep_ = {};
        done(reading, writing);
    }

    From &from_;
    To &to_;
    boost::beast::flat_buffer &read_ahead_;
    Parser &parser_;
    bool in_chunks_;
    Keep keep_{};
    Done done_{};
    std::array<char, route_piece> piece_{};
};

// One direction of a tunnel: bytes as they come.
template <typename From, typename To>
class ByteRelay {
public:
    ByteRelay(From &from, To &to) noexcept : from_(from), to_(to) {}

    // What was read ahead goes first.
    void run(const boost::beast::flat_buffer &read_ahead, Keep keep, std::function<void()> done)
    {
        keep_ = std::move(keep);
        done_ = std::move(done);
        send(read_ahead.data());
    }

private:
    void next()
    {
        from_.async_read_some(boost::asio::buffer(piece_), [this, keep = keep_.alive](ErrorCode problem, std::size_t size) {
            keep_.moved();
            if (problem)
                finish();
            else
                send(boost::asio::const_buffer(piece_.data(), size));
        });
    }

    void send(boost::asio::const_buffer bytes)
    {
        boost::asio::async_write(to_, bytes, [this, keep = keep_.alive](ErrorCode problem, std::size_t) {
            keep_.moved();
            if (problem)
                finish();
            else
                next();
        });
    }

    void finish()
    {
        const auto done = std::exchange(done_, {});
        keep_ = {};
        done();
    }

    From &from_;
    To &to_;
    Keep keep_{};
    std::function<void()> done_{};
    std::array<char, route_piece> piece_{};
};

// The reverse route: requests of a session to the providers of models, to which the gate adds the providers' keys.

// What the rest of the gate does for it.
struct RouteNeeds {
    using Connected = std::function<void(boost::asio::ip::tcp::socket socket, const RouteRefusal *problem)>;
    // Connects to port 443 of a provider's host, whose address it has checked.
    std::function<void(const std::string &host, Connected connected)> connect;
    // Takes an event for the record.
    std::function<void(GateDenial denial)> tell;
};

// http://127.0.0.1:PORT/api.openai.com/v1/responses becomes https://api.openai.com/v1/responses. One request for each connection, on both
// sides: no byte after a request's body counts.
class Route {
public:
    // Borrows the order, whose keys and certificates it needs as long as it lives.
    Route(const GateOrder &order, RouteNeeds needs);

    // `counted` goes with the connection.
    void serve(boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted = {});

private:
    friend class RouteConnection;
    // How providers are spoken to. Throws RouteRefusal.
    boost::asio::ssl::context &tls();

    const GateOrder &order_;
    RouteNeeds needs_;
    std::chrono::seconds idle_;
    std::optional<boost::asio::ssl::context> tls_ = {}; // once a request has needed it
};

// For Gate::serve_route; empty where the order has no provider.
std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order);

// One request at the reverse route, from its first byte to the last of its answer.

// Its steps call each other in the order of this list; each runs when the one before is done. stop() may come between any two.
class RouteConnection : public std::enable_shared_from_this<RouteConnection> {
public:
    RouteConnection(Route &route, boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted);
    void start();

private:
    using Socket = boost::asio::ip::tcp::socket;

    void read_request();
    void take_request();
    void connect();
    void shake_hands();
    void ask_for_body();
    void send_request();
    void send_body();
    void watch_client();
    bool is_still_heard();
    void watch_asker();
    void read_answer();
    void take_answer();
    void send_answer();
    void send_answers_body();
    void tunnel();
    void refuse(const RouteRefusal &refusal);
    void refuse_untrusted(const ErrorCode &problem);
    void end_politely();
    void read_out();
    void stop();

    void wait_at_most(std::chrono::seconds time);
    void watch_time();
    void end_by_time();
    void tell(DenialReason reason) const;
    [[nodiscard]] Keep keep();
    // Wraps a step: what it throws refuses the request.
    template <typename Step>
    auto guarded(Step step);

    Route &route_;
    std::shared_ptr<void> counted_; // of the gate's connections
    Socket client_;
    std::optional<TlsStream> upstream_;
    boost::asio::steady_timer timer_;
    std::chrono::steady_clock::time_point deadline_{};
    std::chrono::seconds patience_{};

    boost::beast::flat_buffer from_client_{route_head_limit + route_piece};
    boost::beast::flat_buffer from_upstream_{route_head_limit + route_piece};
    RequestParser request_parser_{};
    std::optional<AnswerParser> answer_parser_{};
    RouteRequest request_{};
    const GateProvider *provider_ = nullptr;
    AnswerBody answer_body_ = AnswerBody::none;
    std::optional<SecretText> request_head_{};
    std::string answer_head_{};
    std::optional<BodyRelay<Socket, TlsStream, RequestParser>> up_{};
    std::optional<BodyRelay<TlsStream, Socket, AnswerParser>> down_{};
    std::optional<ByteRelay<Socket, TlsStream>> bytes_up_{};
    std::optional<ByteRelay<TlsStream, Socket>> bytes_down_{};
    std::array<char, 512> ignored_{};
    std::size_t ignored_size_ = 0;
    bool has_answered_ = false; // the first byte of an answer is on its way to the session
    bool is_refused_ = false;
    bool is_ending_ = false;
};

} // namespace pi_agent

// What the connections of a session's gate share: names, the way outside, relays, and what the runner is told. And the reverse route:
// requests of a session to the providers of models, to which the gate adds the providers' keys.
#pragma once

#include "gate/rules.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <tuple>
#include <unordered_map>

namespace pi_agent {

// One address of IPv4 (198.18.0.0/15) and one of IPv6 (its last four bytes are those of IPv4) for each name, the same as long as the gate
// remembers it. It remembers the last `name_table_limit` names: an address is given to another name after 131,000 others at the earliest.
constexpr std::size_t name_table_limit = 8192;

struct NameAddresses {
    boost::asio::ip::address_v4 v4;
    boost::asio::ip::address_v6 v6;
};

class NameTable {
public:
    // `name` as read_host() returns it.
    NameAddresses addresses_of(const std::string &name);
    // The name that an address stands for; empty if it is none of these, or forgotten.
    [[nodiscard]] std::string name_of(const Address &address) const;
    // Whether it is one that the table hands out, remembered or not.
    static bool is_synthetic(const Address &address);

private:
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::unordered_map<std::uint32_t, std::string> names_;
    std::uint32_t next_ = 1; // of a cycle without 198.18.0.0 itself: names are remembered in the order of their numbers
};

// Questions to the gate's name server, and its answers (RFC 1035). Nothing is ever forwarded: what is not here, nobody is asked.

constexpr std::size_t dns_message_limit = 1232; // bytes of a question over UDP or TCP; larger ones are dropped

// The answer to a question; empty for what is none, or malformed. Each well-formed name has an address (A; AAAA where the session has
// IPv6), "localhost" its own, and nothing has anything else: so no HTTPS record turns a client to another name or an encrypted one.
std::string answer_dns(std::string_view question, NameTable &names, bool has_v6, bool exists = true);

// The name server of a session: it gives each name an address that stands for it, and asks nobody.
struct Gate;

// Over UDP, for as long as the loop runs. Questions beyond a thousand a second are dropped.
void serve_names(Gate &gate, boost::asio::ip::udp::socket socket);

// Over TCP: one connection.
void visit_name_server(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

// The addresses of names, from the host's own resolver: asked once for each name, by threads of their own, for the resolver cannot be
// interrupted.
class Lookup {
public:
    struct Answer {
        std::vector<Address> addresses = {};
        bool is_known = true; // or nobody has answered
        bool is_asked = true; // or too many wait already, and nobody was
    };
    using Found = std::function<void(const Answer &)>;
    explicit Lookup(boost::asio::io_context &loop);
    // Calls `found` from the loop. What was found is used for some seconds.
    void find(const std::string &name, Found found);

private:
    struct Known {
        Answer answer;
        std::chrono::steady_clock::time_point until;
    };
    void answer(const std::string &name, Answer answer);

    boost::asio::io_context &loop_;
    boost::asio::thread_pool threads_;
    std::map<std::string, std::vector<Found>> waiting_ = {};
    std::map<std::string, Known> known_ = {};
};

// Whether the gate has no descriptor or memory left: a session can use them up, and nothing is denied then.
bool is_full(const boost::system::error_code &problem);

// With the socket, or an error. Once.
using Dialled = std::function<void(const boost::system::error_code &problem, boost::asio::ip::tcp::socket socket)>;

// Tries the addresses in their order, the other family second, and begins with the next one where the last has not answered for a quarter
// of a second (RFC 8305). These very addresses: nobody is asked again.
void dial(boost::asio::io_context &loop, const std::vector<Address> &addresses, std::uint16_t port, Dialled dialled);

// Nothing waits for a runner that does not read; false where it does not. One that is gone ends the gate by its channel's end.
bool tell(FdRef runner, const GateMessage &message) noexcept;

// What the gate tells the runner about denied connections: the first of a kind at once, then its count, once a second at most.

// Different ones in one second; what goes beyond is counted under its reason, without a host.
constexpr std::size_t denials_a_second = 50;

class Denials {
public:
    // `runner`: a pipe of packets.
    Denials(boost::asio::io_context &loop, FdRef runner) : runner_(runner), timer_(loop) {}
    // Nothing waits: where the runner does not read, they are counted until it does.
    void report(GateDenial denial);
    // What was counted since, at once: before the end, and each second.
    void tell_rest();

private:
    void send(GateDenial &denial) const;
    void wait();

    using Key = std::tuple<DenialKind, std::string, std::uint16_t, DenialReason>;
    FdRef runner_;
    boost::asio::steady_timer timer_;
    std::map<Key, GateDenial> recent_ = {}; // count 0: sent, and nothing more since
    bool waits_ = false;
};

// For people, in a line: what was refused, why, and what would change it.
std::string text_of_denial(const GateDenial &denial);

// What a session can make its gate hold must fit into the memory of the gate's unit (256 MiB: runner/plan/gate_plan.cpp). In KiB, at most:
//   a request at the route, 510: its head as it came (80), in fields (80), as a target (8) and as it goes out (88); TLS by Asio's and
//       OpenSSL's buffers, with the provider's certificates (150); the answer's head (40); pieces of bodies (64)
//   any other connection, 130: one piece in each direction (64) that the other side does not take
//   all of these together, 16,384 beyond such pieces
//   the gate itself, 20,500: its program, the host's certificates, 8,192 names and the last denials
// So 128 of the one and 384 of the other hold 149 MiB together. The kernel's buffers of all these sockets are charged to the unit, too:
// they have the rest, and who fills that as well ends their own gate.
constexpr std::size_t connection_limit = 512; // at once, with questions to the name server over TCP
constexpr std::size_t route_limit = 128;      // of these: requests at the reverse route

// How an attempt to reach the outside ended.
struct Reached {
    std::optional<boost::asio::ip::tcp::socket> socket = {};
    std::optional<DenialReason> reason = {}; // without a socket; none where nobody answered
    std::string where = {};                  // of the rule that almost allows it
    std::string address = {};                // that the name leads to, where that is the reason
};
using WhenReached = std::function<void(Reached)>;
// For people, after its name.
std::string why_not_reached(const Reached &reached);

// The proxy above the gate, by which the host reaches the Internet. It is not believed: it gets names, and bytes that are for the host of
// that name.
class ProxyAbove {
public:
    // Throws Failure for a proxy that is none.
    ProxyAbove(const GateRule &via, const std::string &login, const std::vector<GateRule> &without);

    Target at = {};
    std::string where;       // of the policy, with its name
    std::string credentials; // a field, or nothing

    // Whether the gate connects to this host by itself. Always to this host's own loopback, and to what each host has for itself.
    [[nodiscard]] bool is_direct(const Host &host) const;
    // What the host's own resolver knows. Behind a proxy it often answers nothing: then nobody waits for it. Where it does answer, a name
    // that takes long is waited for: its owner could be slow so that nobody judges where it leads.
    void find_soon(Gate &gate, const std::string &name, const Lookup::Found &found);
    // Learns where the proxy is. Forgets nothing while a session makes the resolver fail.
    void find_itself(Gate &gate, std::function<void()> then);
    [[nodiscard]] bool is_found() const { return !addresses_.empty(); }
    // Whether a session would reach the proxy there.
    [[nodiscard]] bool is_itself(Gate &gate, const Address &address, std::uint16_t port) const;
    // The user hears within two seconds of `begun` what the proxy lacks. Bytes of the host after the proxy's answer stay in the socket.
    void open_tunnel(Gate &gate, const Target &target, std::chrono::steady_clock::time_point begun, WhenReached when_reached) const;

private:
    std::vector<HostRule> direct_ = {};
    std::vector<Address> addresses_ = {};
    std::map<std::string, std::chrono::steady_clock::time_point> unheard_ = {}; // names that the resolver does not answer for, until then
    std::chrono::steady_clock::time_point answers_until_ = {};                  // the resolver, as far as is known
    bool is_trying_ = false;                                                    // whether it answers
};

struct Gate {
    // `runner`: a pipe of packets, for what it tells.
    Gate(boost::asio::io_context &the_loop, FdRef runner, const GateOrder &order);
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    // One more connection as long as the result lives; empty where there are too many.
    std::shared_ptr<void> count_connection(bool is_at_route = false);

    boost::asio::io_context &loop;
    std::chrono::seconds idle;
    GateRules rules;
    Denials denials;
    Lookup lookup;
    HostRoutes routes = {};
    std::optional<ProxyAbove> above = {};
    NameTable names = {};
    bool has_v6 = false; // the session has a listener of IPv6, so its name server says addresses of it
    std::size_t connections = 0, at_route = 0;
    // Answers at the reverse route; without it, such a connection is closed.
    std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void> counted)> serve_route = {};
};

// Why a session may not connect to it; nothing where it may.
std::optional<Reached> why_not(const Gate &gate, const Target &target);

// A name, whatever the rules say of it: looked up once, each of its addresses is judged, and one of the good ones is dialled. For a
// provider's host, which the policy names elsewhere.
void reach_name(Gate &gate, const Target &target, WhenReached when_reached);

// By the rules: what they allow is looked up once, each of its addresses is judged, and one of the good ones is dialled.
void reach(Gate &gate, const Target &target, WhenReached when_reached);

// Answers at the sockets that the runner made in the session's network. Throws SystemFailure for one that is no listener.
void serve(Gate &gate, std::vector<ReceivedListener> listeners);

// What a relay has read and the other side has not taken yet, and how much a relay may read at once, so that all of it stays bounded.

// Every relay may read a piece, and hold it, in each direction. A stream passes faster by reads that are larger: fewer of them, and fewer
// awakenings of both sides (docs/benchmarks-results.md). So a relay reads much at once, as long as there is little that all relays
// together hold beyond their pieces. All in bytes.
constexpr std::size_t one_piece = std::size_t{64} << 10U;
constexpr std::size_t most_at_once = std::size_t{512} << 10U;
constexpr std::size_t most_beyond = std::size_t{16} << 20U;

class Held {
public:
    Held() = default;
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
    ~Held() { all_beyond -= beyond_; }

    // How much may be read now, for one direction that holds nothing: `most_at_once` or `one_piece`.
    static std::size_t room() { return all_beyond + (most_at_once - one_piece) <= most_beyond ? most_at_once : one_piece; }

    bool is_empty() const { return taken_ == bytes_.size(); }
    std::string_view rest() const { return std::string_view(bytes_).substr(taken_); }
    void append(std::string_view bytes)
    {
        bytes_.append(bytes);
        count();
    }
    void replace(std::string bytes)
    {
        bytes_.swap(bytes); // an assignment might keep the memory
        taken_ = 0;
        count();
    }
    // The first `count` of the rest are written. Nothing is kept of what is written whole.
    void take(std::size_t count)
    {
        taken_ += count;
        if (is_empty()) replace({});
    }

private:
    // By the memory that it takes.
    void count()
    {
        all_beyond -= beyond_;
        beyond_ = std::max(bytes_.capacity(), one_piece) - one_piece;
        all_beyond += beyond_;
    }

    static inline std::size_t all_beyond = 0; // what all relays hold beyond a piece each
    std::string bytes_ = {};
    std::size_t taken_ = 0, beyond_ = 0;
};

// Judges the session's first bytes, all that came so far.
using Judge = std::function<FirstBytes(std::string_view bytes)>;

struct RelaySetup {
    boost::asio::ip::tcp::socket session, outside;
    std::string first = {}; // of the session, read already: goes through `judge` if there is one, else outside
    Judge judge = {};
    std::uint64_t further = without_end; // without a judge: how many bytes after `first` may go outside
    bool is_upgrade = false;             // likewise: any number, once the server has answered 101
    bool is_patient = false;             // the session need not speak first: until it does, what comes from outside passes
    std::chrono::seconds idle{};
    std::shared_ptr<void> counted = {}; // one of the session's connections, as long as the relay lives
};

// Reads a side only while the other takes what came. One side's end (FIN) is handed on to the other, which may go on; a side that breaks
// off (RST) breaks the other off, so that half an answer never looks whole.
void start_relay(RelaySetup setup);

// Takes the socket over, says something to whoever connected, and closes when they have read it. With bytes of theirs unread, a close would
// reset the connection, and what was said could be lost with it.
void say_farewell(boost::asio::ip::tcp::socket &socket, std::string text, std::shared_ptr<void> counted);

// HTTP_PROXY: "CONNECT host:port", or a plain request with a whole address.
void visit_proxy(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

// What connects by itself: the address that it means is the socket's own, and stands for a name where the gate's name server gave it.
void visit_directly(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

// --- The reverse route.

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

// The field with which a proxy is told "NAME:PASSWORD" (RFC 7617); nothing without a login.
std::string proxy_credentials(const std::string &login);

// After a handshake that failed: why the certificate is not trusted; empty where it failed otherwise.
std::string why_untrusted(TlsStream &stream);

// For Gate::serve_route; empty where the order has no provider. Borrows the order, whose keys and certificates it needs as long as it
// lives. http://127.0.0.1:PORT/api.openai.com/v1/responses becomes https://api.openai.com/v1/responses. One request for each connection, on
// both sides: no byte after a request's body counts.
std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order);

} // namespace pi_agent

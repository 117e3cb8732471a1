// Hosts in one form, what the policy lets a session connect to, and where the addresses lead that names stand for. And what a connection
// says: heads of HTTP and first bytes, read strictly, and refused in their language.
#pragma once

#include "runner/wire/gate_messages.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <limits>

namespace pi_agent {

// Hosts as somebody wrote them, in one form: a rule, a request, a ClientHello and a question to the name server mean the same by it.

using Address = boost::asio::ip::address;

struct Host {
    std::string text;                    // a name in lower case without a dot at its end, or an address as the kernel writes it
    std::optional<Address> address = {}; // where it is one; IPv4 inside of IPv6 (::ffff:0:0/96) is IPv4, and none has a zone
};

// By read_one_host() (common/policy/host_rule.hpp). Addresses of IPv6 may have brackets; none has a zone.
std::optional<Host> read_host(std::string_view text);
Host to_host(const Address &address);

struct Target {
    Host host = {};
    std::uint16_t port = 0;
};

// "HOST:PORT"; HOST alone where there is a usual port (0: there is none).
std::optional<Target> read_target(std::string_view text, std::uint16_t usual_port);

// This host, as a session calls the host outside: "localhost", or an address of its loopback.
bool is_loopback(const Host &host) noexcept;

// What a session asks for, compared with all rules.
struct RuleAnswer {
    const GateRule *rule = nullptr;   // that allows it
    const GateRule *almost = nullptr; // where none does: that would, at another port
};

class GateRules {
public:
    // Throws Failure for a rule that is none: a rule that can never hold must not be taken in silence.
    explicit GateRules(std::vector<GateRule> rules);

    // By the name, or by the address where somebody asks for one.
    [[nodiscard]] RuleAnswer find(const Host &host, std::uint16_t port) const;

    // Whether a name that leads to this address may be connected to: it is one of the Internet, or a rule names it by itself or by a range
    // with that port. So a rule for a name never opens what its owner points it at in the networks of this host. "localhost" is dialled
    // without asking anybody.
    [[nodiscard]] bool may_lead_to(const Address &address, std::uint16_t port) const;

private:
    std::vector<GateRule> written_; // each at the same place as what it means
    std::vector<HostRule> rules_;
};

// Which addresses a name may lead to without a rule that names them: those of the Internet, and no others.

// Of a network that leads IPv6 to IPv4 by a prefix of its own (NAT64, RFC 6052): the prefixes that `known` has, the addresses of a name
// that has one of IPv4 alone (RFC 7050); and what an address below one of them has inside. Otherwise itself.
constexpr const char *translation_name = "ipv4only.arpa";
std::vector<boost::asio::ip::network_v6> translating_prefixes(const std::vector<Address> &known);
Address translated(const Address &address, const std::vector<boost::asio::ip::network_v6> &prefixes);

// Nothing that is reserved, on this host or in networks of its own: loopback, private, shared (CGNAT), link-local, unique-local,
// multicast, documentation, benchmarks, 6to4 and Teredo, and where clouds answer questions about a machine. Of IPv6 only what is assigned
// (2000::/3) is one of the Internet.
bool is_of_internet(const Address &address);

// Where the kernel sends what goes to an address: to this host itself, to a neighbour, or away by a gateway.
enum class Place {
    here, // this host has the address, or nobody can say where it is
    near, // on a network of this host's own: no gateway is between
    away, // by a gateway, or out of a device that leads to more than any one network has (PPP, a tunnel); or nothing leads there
};

// The kernel is asked each time: addresses and routes change while a session runs. Asks by a socket that is opened once, because the gate
// opens no such socket later (runner/filter/calls.toml), and has none left when a session uses up its descriptors.
class HostRoutes {
public:
    // Throws SystemFailure.
    HostRoutes();
    [[nodiscard]] Place place_of(const Address &address);

private:
    struct Answer {
        int problem = 0; // errno, instead of a route
        unsigned char type = 0, bits = 0;
        bool has_gateway = false;
    };
    Answer ask(const Address &address, unsigned flags);

    UniqueFd netlink_;
    std::uint32_t question_ = 0;
};

// --- What a connection says.

// What heads of HTTP have in common, whoever reads them: where one ends, what bytes it has, and words in which case does not count.

constexpr std::string_view head_line_end = "\r\n";

// Why a request is not passed on, or an answer. What it says never has bytes of a key.
class RequestRefusal : public std::runtime_error {
public:
    RequestRefusal(unsigned http_status, std::optional<DenialReason> why, const std::string &said)
        : std::runtime_error(said), status(http_status), reason(why)
    {
    }
    // It cannot be read, or two readers could understand it differently.
    explicit RequestRefusal(const std::string &said, unsigned http_status = 400)
        : RequestRefusal(http_status, DenialReason::malformed, said)
    {
    }
    unsigned status;                    // of HTTP
    std::optional<DenialReason> reason; // none: nothing was denied, the provider could not be asked
};

constexpr std::size_t request_head_limit = 16UL * 1024;
constexpr std::size_t route_head_limit = 64UL * 1024;

// How long heads may be, and which fields two readers of one message would understand differently if they came twice.
struct HeadRules {
    std::size_t bytes, fields;
    std::string_view single; // with commas
};
constexpr HeadRules rules_at_proxy = {request_head_limit, 100, "host,content-length,transfer-encoding"}; // also for plain HTTP by itself
constexpr HeadRules rules_at_route = {route_head_limit, 128,
                                      "host,content-length,transfer-encoding,upgrade,expect,content-encoding,sec-websocket-key,"
                                      "sec-websocket-version,origin,sec-fetch-site"};

// How many of the bytes are the head: 0 until it is whole. Throws RequestRefusal as soon as they cannot become one: each line ends in CR
// LF, and nothing else has a control character but a tab (RFC 9112, 2.2).
std::size_t find_head(std::string_view bytes, std::size_t limit);

// The names and values of a whole head's fields, as they were written: each line is a field with a name, and none is folded. Throws
// RequestRefusal.
std::vector<std::pair<std::string_view, std::string_view>> read_fields(std::string_view head, const HeadRules &rules);

// Of the field content-length: digits alone, and no sign, list, blank or hexadecimal. Throws RequestRefusal.
std::uint64_t read_length(std::string_view value);

// Names and words of HTTP do not depend on the case of their letters.
bool is_same(std::string_view one, std::string_view other) noexcept;

// Whether a list with commas has the word.
bool has_listed_word(std::string_view list, std::string_view word);

// For the next station alone: how the connection is used, or how the body's length is said. `named`: the message's field "connection".
bool is_for_next_station(std::string_view name, std::string_view named);

// A whole answer that ends the connection: why somebody is refused something.
std::string write_refusal(unsigned status, std::optional<DenialReason> reason, const std::string &type, const std::string &text);

// The head of a request at the proxy, or of plain HTTP that a session sends by itself: read strictly, and written anew.

using RequestParser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
using RequestHead = boost::beast::http::request_header<>;

inline std::string_view view_of(boost::beast::string_view text) noexcept
{
    return {text.data(), text.size()};
}

// Puts a whole head into the parser, once its fields are read strictly. Throws RequestRefusal.
template <typename Parser>
void put_head(std::string_view head, Parser &parser, const HeadRules &rules)
{
    read_fields(head, rules);
    if (head.starts_with(head_line_end) || head.substr(0, head.find(head_line_end)).find('\t') != head.npos)
        throw RequestRefusal("the first line is none of HTTP");
    parser.header_limit(static_cast<std::uint32_t>(rules.bytes));
    parser.body_limit(std::numeric_limits<std::uint64_t>::max()); // for Beast 1.74 every length is more than none
    boost::beast::error_code problem;
    const std::size_t taken = parser.put(boost::asio::buffer(head.data(), head.size()), problem);
    if (problem && problem != boost::beast::http::error::need_buffer && problem != boost::beast::http::error::need_more)
        throw RequestRefusal("the head cannot be read");
    if (!parser.is_header_done() || taken != head.size()) throw RequestRefusal("the head cannot be read");
}

// `head` as find_head() found it. Throws RequestRefusal.
RequestHead read_request_head(std::string_view head);

// "CONNECT host:port". Empty if the target is anything else.
std::optional<Target> connect_target(const RequestHead &head);

// A request that is not a tunnel.
struct PlainRequest {
    Target target;             // of "http://host:port/path" at the proxy, of the field "host" otherwise
    std::string path;          // with its query
    std::uint64_t body = 0;    // bytes that follow the head
    bool is_encrypted = false; // "https://": only a tunnel could carry it
    bool is_upgrade = false;   // it opens a WebSocket: what follows passes once the server has taken it (RFC 6455)
};

// `usual_port`: what a "host" without a port means. A request that names two hosts is malformed. Throws RequestRefusal.
PlainRequest read_plain_request(const RequestHead &head, bool at_proxy, std::uint16_t usual_port);

// What the server gets: for it alone, once. It asks the server to close, so nothing of another request can follow on this connection.
std::string write_plain_request(const RequestHead &head, const PlainRequest &request);

// Bytes of a message are not what they must be.
struct Malformed : std::exception {};

// Reads a message of bytes from its beginning, each number with its highest byte first. Throws Malformed where there are fewer.
class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) noexcept : rest_(bytes) {}
    std::string_view take(std::size_t count)
    {
        if (count > rest_.size()) throw Malformed();
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }
    unsigned number(std::size_t bytes)
    {
        unsigned value = 0;
        for (const char one : take(bytes))
            value = (value << 8U) | static_cast<unsigned char>(one);
        return value;
    }
    // A field that says its length in so many bytes before it.
    std::string_view counted(std::size_t bytes) { return take(number(bytes)); }
    [[nodiscard]] std::size_t size() const noexcept { return rest_.size(); }
    [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

private:
    std::string_view rest_;
};

// The first message of TLS, of which the gate reads the name that it asks for. Nothing is changed and nothing decrypted.

constexpr std::size_t hello_limit = 32UL * 1024; // bytes in which a ClientHello must be whole, in however many records

enum class HelloState {
    incomplete,
    whole,
    not_tls,   // the bytes begin something else
    malformed, // also what two readers could understand differently
};

struct ClientHello {
    HelloState state = HelloState::incomplete;
    std::size_t needed = 0;               // incomplete: nothing more can be said before there are this many bytes
    std::optional<std::string> name = {}; // as it is written (server_name, RFC 6066)
    bool has_encrypted_name = false;      // encrypted_client_hello, or the drafts before it
};

// From the first bytes of a connection, and from all of them again as more come.
ClientHello read_client_hello(std::string_view bytes);

// A fatal alert, before any key is there: what a program then says of the connection.
enum class Alert : unsigned char { access_denied = 49, decode_error = 50, internal_error = 80, unrecognized_name = 112 };
std::string write_alert(Alert alert);

// What the first bytes of a connection say, compared with the host that it was opened to.

// What has to be said at a port before anything passes.
enum class Speech {
    tls,  // 443: a ClientHello with the name
    http, // 80: one request with the name, written anew; the next one needs a connection of its own
    any,  // other ports: anything; where it is a ClientHello with a name, the right one
};
Speech speech_of_port(std::uint16_t port) noexcept;

constexpr std::uint64_t without_end = std::numeric_limits<std::uint64_t>::max();

struct FirstBytes {
    enum class State { incomplete, passes, refused };
    State state = State::incomplete;
    DenialReason reason{};               // refused
    std::optional<Host> said = {};       // passes: the name in them
    std::string forward = {};            // passes: what the server gets for all the bytes
    std::uint64_t further = without_end; // passes: how many bytes after these it may get
    bool is_upgrade = false;             // passes: more may follow once the server has answered 101
    std::string farewell = {};           // refused by a relay's judge: what the session is told
};

// `named`: the host that the connection was opened to, where that is known; without it, the bytes have to say one. All bytes so far.
FirstBytes judge_first_bytes(Speech speech, const std::optional<Host> &named, std::uint16_t port, std::string_view bytes);

// What the session is told in the language of its connection; empty where nobody could read it. Without a reason, nothing was denied.
std::string refusal_in(Speech speech, std::optional<DenialReason> reason, const std::string &text);

// --- What the runner sends at the start (runner/wire/gate_messages.hpp).

GateOrder receive_gate_order(FdRef channel, Deadline deadline);
ReceivedListener receive_gate_listener(FdRef channel, Deadline deadline);

} // namespace pi_agent

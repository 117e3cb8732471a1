// Hosts and heads of HTTP as somebody wrote them, read strictly, into one form.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility> // for Boost.Asio 1.74, which forgets it
#include <vector>

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

// What heads of HTTP have in common, whoever reads them: where one ends, what bytes it has, and words in which case does not count.

constexpr std::string_view head_line_end = "\r\n";

enum class HeadProblem { none, too_large, control_character };

struct HeadSize {
    std::size_t size = 0; // 0 until it is whole
    HeadProblem problem = HeadProblem::none;
};

// How many of the bytes are the head, or what keeps them from becoming one. Each line ends in CR LF, and nothing else has a control
// character but a tab (RFC 9112, 2.2).
HeadSize measure_head(std::string_view bytes, std::size_t limit) noexcept;

// The name of a field, or a method (RFC 9110, 5.6.2).
bool is_token(std::string_view text) noexcept;

// Names and words of HTTP do not depend on the case of their letters.
bool is_same(std::string_view one, std::string_view other) noexcept;

std::string_view without_blanks(std::string_view text) noexcept;

// Whether a list with commas has the word.
bool has_listed_word(std::string_view list, std::string_view word) noexcept;

// The head of a request at the proxy, or of plain HTTP that a session sends by itself: read strictly, and written anew.

constexpr std::size_t request_head_limit = 16UL * 1024;

// It cannot be read, or two readers could understand it differently.
class MalformedHead : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct RequestHead {
    std::string method;
    std::string target;
    unsigned minor = 1; // of HTTP/1.x
    struct Field {
        std::string name; // as it was written
        std::string value;
    };
    std::vector<Field> fields = {};
};

// How many of the bytes are the head: 0 until it is whole. Throws MalformedHead as soon as they cannot become one.
std::size_t find_request_head(std::string_view bytes);

// `head` as find_request_head() found it. Throws MalformedHead.
RequestHead read_request_head(std::string_view head);

// "CONNECT host:port". Empty if the target is anything else.
std::optional<Target> connect_target(const RequestHead &head);

// A request that is not a tunnel.
struct PlainRequest {
    Target target;             // of "http://host:port/path" at the proxy, of the field "host" otherwise
    std::string path;          // with its query
    std::uint64_t body = 0;    // bytes that follow the head
    bool is_encrypted = false; // "https://": only a tunnel could carry it
};

// `usual_port`: what a "host" without a port means. A request that names two hosts is malformed. Throws MalformedHead.
PlainRequest read_plain_request(const RequestHead &head, bool at_proxy, std::uint16_t usual_port);

// What the server gets: for it alone, once. It asks the server to close, so nothing of another request can follow on this connection.
std::string write_plain_request(const RequestHead &head, const PlainRequest &request);

} // namespace pi_agent

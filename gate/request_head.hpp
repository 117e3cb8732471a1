// Heads of HTTP as somebody wrote them, read strictly, into one form.
#pragma once

#include "gate/rules.hpp"

namespace pi_agent {

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
    std::vector<std::string_view> single;
};
HeadRules rules_at_proxy(); // also for plain HTTP that a session sends by itself
HeadRules rules_at_route();

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
bool has_listed_word(std::string_view list, std::string_view word) noexcept;

// For the next station alone: how the connection is used, or how the body's length is said. `named`: the message's field "connection".
bool is_for_next_station(std::string_view name, std::string_view named) noexcept;

// A whole answer that ends the connection: why somebody is refused something.
std::string write_refusal(unsigned status, std::optional<DenialReason> reason, const std::string &type, const std::string &text);

// The head of a request at the proxy, or of plain HTTP that a session sends by itself: read strictly, and written anew.

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
};

// `usual_port`: what a "host" without a port means. A request that names two hosts is malformed. Throws RequestRefusal.
PlainRequest read_plain_request(const RequestHead &head, bool at_proxy, std::uint16_t usual_port);

// What the server gets: for it alone, once. It asks the server to close, so nothing of another request can follow on this connection.
std::string write_plain_request(const RequestHead &head, const PlainRequest &request);

} // namespace pi_agent

// The head of a request at the proxy, or of plain HTTP that a session sends by itself: read strictly, and written anew.
#pragma once

#include "gate/host_text.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

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

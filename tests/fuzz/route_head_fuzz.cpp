// The reverse route: what the provider gets of any bytes is one request, to its host, with its key alone, and read in one way only.
#include "gate/gate.hpp"
#include "support/property.hpp"

#include <algorithm>
#include <array>
#include <memory>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

constexpr std::string_view secret = "sk-the-gates-own";

const std::vector<GateProvider> &providers()
{
    static const std::vector<GateProvider> known = {
        {"h", "authorization", "Bearer ", std::string(secret), {"POST", "GET", "WEBSOCKET", "POST"}, {"/v1/", "/v1/", "/v1/", "/x"}, "p:1"},
        {"g", "x-goog-api-key", "", std::string(secret), {"POST"}, {"/v1beta/models/"}, "p:2"},
    };
    return known;
}

template <typename Read>
auto unless_denied(const Read &read) -> std::optional<decltype(read())>
{
    try {
        return read();
    } catch (const RequestRefusal &refusal) {
        require(refusal.status >= 400 && refusal.status < 600, "a refusal without a status");
        require(write_refusal(refusal).find(secret) == std::string::npos, "a refusal with a key");
        return std::nullopt;
    }
}

// A reader that knows nothing but lines.
std::vector<std::string_view> lines_of(std::string_view head)
{
    std::vector<std::string_view> lines;
    require(head.ends_with("\r\n\r\n"), "a head that does not end");
    for (std::size_t begin = 0; begin < head.size() - 2;) {
        const std::size_t end = head.find("\r\n", begin);
        const std::string_view line = head.substr(begin, end - begin);
        require(!line.empty(), "a head that ends before its end");
        require(line.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos, "a line in a line");
        const std::size_t colon = line.find(':');
        require(lines.empty() || (colon != std::string_view::npos && colon > 0 && line.find_first_of(" \t") > colon),
                "a line that is no field");
        lines.push_back(line);
        begin = end + 2;
    }
    return lines;
}

std::size_t count(const std::vector<std::string_view> &lines, std::string_view name)
{
    return static_cast<std::size_t>(
        std::count_if(lines.begin() + 1, lines.end(), [&](auto line) { return is_same(line.substr(0, line.find(':')), name); }));
}

void require_sent(std::string_view head, const RouteRequest &request, const GateProvider &provider)
{
    const auto lines = lines_of(head);
    const bool is_websocket = request.method == websocket_method;
    require(lines[0] == (is_websocket ? "GET" : request.method) + " " + request.target.path + request.target.query + " HTTP/1.1",
            "another first line");
    require((request.target.path + "/").find("/../") == std::string::npos && (request.target.path + "/").find("/./") == std::string::npos,
            "a way up");
    require(request.target.path.find("//") == std::string::npos && request.target.path.find('\\') == std::string::npos,
            "a path that is not plain");
    require(count(lines, "host") == 1 && count(lines, "connection") == 1 && count(lines, "upgrade") == (is_websocket ? 1U : 0U),
            "not one of each");
    require(count(lines, "content-length") + count(lines, "transfer-encoding") <= 1, "two lengths");
    require(!is_websocket || count(lines, "content-length") + count(lines, "transfer-encoding") == 0, "a WebSocket with a body");
    std::size_t keys = 0;
    for (std::size_t index = 1; index < lines.size(); ++index) {
        const std::size_t colon = lines[index].find(':');
        require(colon != std::string_view::npos && colon > 0, "a line without a name");
        const std::string_view name = lines[index].substr(0, colon);
        const std::string_view value = lines[index].substr(colon + 2);
        if (is_credential(name, value)) {
            ++keys;
            require(name == provider.header && value == provider.prefix + std::string(secret), "a key that is not the provider's");
        }
    }
    require(keys == 1, "not one key");
}

// What is left of the input is the body: it ends, and gives no more than came.
template <typename Parser>
void read_body(Parser &parser, std::string_view rest)
{
    std::array<char, 64> piece{};
    std::size_t given = 0;
    for (std::size_t round = 0; !parser.is_done() && round < 100'000; ++round) {
        auto &body = parser.get().body();
        body.data = piece.data();
        body.size = piece.size();
        body.more = true;
        boost::beast::error_code problem;
        const std::size_t taken = rest.empty() ? 0 : parser.put(boost::asio::buffer(rest.data(), rest.size()), problem);
        require(taken <= rest.size(), "more taken than came");
        rest.remove_prefix(taken);
        given += piece.size() - body.size;
        if (problem && problem != boost::beast::http::error::need_buffer) break;
        if (rest.empty()) break;
        require(round < 99'999, "no end");
    }
    require(given <= 1'000'000, "a body out of nothing");
}

void try_request(std::string_view input)
{
    const auto size = unless_denied([&] { return find_head(input, route_head_limit); });
    if (!size || *size == 0) return;
    const auto parser = std::make_unique<RequestParser>();
    const auto request = unless_denied([&] { return read_request_head(input.substr(0, *size), *parser); });
    if (!request) return;
    const auto provider = unless_denied([&] { return &choose_provider(providers(), request->method, request->target); });
    if (!provider) return;
    const SecretText head = write_request_head(*request, *parser, **provider);
    require_sent(head.text(), *request, **provider);
    read_body(*parser, input.substr(*size));
}

void try_answer(std::string_view input, bool websocket)
{
    const auto size = unless_denied([&] { return find_head(input, route_head_limit); });
    if (!size || *size == 0) return;
    const auto parser = std::make_unique<AnswerParser>();
    const auto body = unless_denied([&] { return read_answer_head(input.substr(0, *size), *parser, websocket); });
    if (!body || !*body) return;
    const std::string head = write_answer_head(*parser, **body);
    const auto lines = lines_of(head);
    require(lines[0].starts_with("HTTP/1.1 "), "another first line");
    require(count(lines, "content-length") + count(lines, "transfer-encoding") <= 1 && count(lines, "set-cookie") == 0, "two lengths");
    require((**body == AnswerBody::tunnel) == (count(lines, "upgrade") == 1) && (**body != AnswerBody::tunnel || websocket),
            "a tunnel for nobody");
    read_body(*parser, input.substr(*size));
}

} // namespace

// The first byte says what the others are.
void pi_agent::fuzz::try_input(std::string_view input)
{
    if (input.empty()) return;
    const char kind = input.front();
    input.remove_prefix(1);
    if (kind == 'a' || kind == 'w')
        try_answer(input, kind == 'w');
    else if (kind == 't')
        unless_denied([&] { return read_route_target(input).path.size(); });
    else
        try_request(input);
}

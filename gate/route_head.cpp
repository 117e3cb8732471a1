// Targets and heads at the reverse route: read strictly, allowed, and written anew.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"

#include <nlohmann/json.hpp>

#include <cstring>

namespace pi_agent {

namespace http = boost::beast::http;

namespace {

constexpr std::size_t target_limit = 8192;
// RFC 3986, besides letters and digits. Without ";", which some servers take for the beginning of parameters that others do not see.
constexpr std::string_view query_bytes = "?-._~!$&'()*+,=:@%/", path_bytes = query_bytes.substr(1);
constexpr std::string_view bytes_without_need = "-._~"; // of an escape

std::optional<char> unescape(std::string_view three) noexcept
{
    const auto number = three.size() == 3 ? to_number<unsigned char>(three.substr(1), 16) : std::nullopt;
    return number ? std::optional(static_cast<char>(*number)) : std::nullopt;
}

// Of an escape in a path nothing may depend on whether, and how often, a server takes it back.
void require_plain_escapes(std::string_view path)
{
    for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
        const auto byte = unescape(path.substr(at, 3));
        if (!byte) throw RequestRefusal("the path has a % that begins no escape");
        const bool is_control = static_cast<unsigned char>(*byte) < ' ' || *byte == 0x7f;
        if (is_control || std::string_view("/\\%;?#").find(*byte) != std::string_view::npos)
            throw RequestRefusal("the path has an escape that a server could take for a part of its structure");
        if (is_made_of({&*byte, 1}, bytes_without_need)) throw RequestRefusal("the path has an escape of a byte that needs none");
    }
}

void require_plain_segments(std::string_view path)
{
    for (const auto segment : split(path.substr(std::min<std::size_t>(path.size(), 1)), '/')) {
        if (segment == "." || segment == "..") throw RequestRefusal("the path has a segment that leads elsewhere: . or ..");
        if (segment.empty()) throw RequestRefusal("the path has an empty segment: //");
    }
}

std::string unescaped_lower(std::string_view text)
{
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
        char byte = text[at];
        if (byte == '%') {
            const auto meant = unescape(text.substr(at, 3));
            if (!meant) throw RequestRefusal("the query has a % that begins no escape");
            byte = *meant;
            at += 2;
        }
        result += lower_case(byte);
    }
    return result;
}

// With a key of its own, whoever runs in the session would send what it found there to an account of its own. The last ones change what a
// request is. So do those of Google that begin with "$": "$key" is "key", and others say a method, fields of the head, or a body.
bool is_left_out(std::string_view parameter)
{
    constexpr std::string_view names =
        "key api_key api-key apikey access_token oauth_token bearer_token token auth authorization subscription-key x-goog-api-key sig "
        "signature x-amz-security-token x-amz-signature x-amz-credential _method x-http-method-override";
    const std::string name = unescaped_lower(parameter.substr(0, parameter.find('=')));
    return name.starts_with('$') || has_word(names, name);
}

std::string without_credentials(std::string_view query)
{
    std::string kept;
    for (const auto parameter : split(query, '&'))
        if (!parameter.empty() && !is_left_out(parameter)) kept.append(kept.empty() ? "?" : "&").append(parameter);
    return kept;
}

bool allows(std::string_view listed, std::string_view path) noexcept
{
    if (const std::size_t star = listed.find('*'); star != listed.npos) {
        const std::string_view last = listed.substr(star + 1);
        return path.size() > star + last.size() && path.starts_with(listed.substr(0, star)) && path.ends_with(last) &&
               path.substr(star, path.size() - star - last.size()).find('/') == path.npos;
    }
    return listed.ends_with('/') ? path.size() > listed.size() && path.starts_with(listed) : path == listed;
}

// As servers see it that hand fields to programs as variables: x_api_key is x-api-key there.
std::string as_servers_may_see(std::string_view name)
{
    std::string seen(name);
    for (char &byte : seen)
        byte = byte == '_' ? '-' : lower_case(byte);
    return seen;
}

// In an answer: what would have no effect, or leads around the route.
bool is_of_no_use_inside(std::string_view name)
{
    return has_word("set-cookie set-cookie2 alt-svc strict-transport-security", as_servers_may_see(name));
}

constexpr std::string_view http_scheme = "http://";

void require_framing(const http::fields &fields)
{
    const auto length = fields.find(http::field::content_length);
    const auto encoding = fields.find(http::field::transfer_encoding);
    if (length != fields.end()) read_length(view_of(length->value()));
    if (encoding != fields.end() && !is_same(view_of(encoding->value()), "chunked"))
        throw RequestRefusal("the transfer-encoding is not chunked", 501);
    if (length != fields.end() && encoding != fields.end()) throw RequestRefusal("the head has both content-length and transfer-encoding");
}

template <typename Parser>
void put_route_head(std::string_view head, Parser &parser)
{
    put_head(head, parser, rules_at_route);
    require_framing(parser.get());
}

// 16 bytes in base64 (RFC 6455, 4.2.1). A server that finds none takes the request for a plain GET.
bool is_websocket_key(std::string_view key) noexcept
{
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    constexpr std::string_view last_digits = "AQgw"; // of the last byte two bits are left
    return key.size() == 24 && key.ends_with("==") && key.find_first_not_of(digits) == 22 && last_digits.find(key[21]) != key.npos;
}

// To any other protocol a client only offers to change, and goes on as it began where nobody does (RFC 9110, 7.8). Java's own client offers
// h2c with each request to plain HTTP. The provider hears nothing of it.
bool asks_for_websocket(const http::fields &fields)
{
    const auto upgrade = fields.find(http::field::upgrade);
    if (upgrade == fields.end() || !is_same(view_of(upgrade->value()), "websocket")) return false;
    if (!has_listed_word(view_of(fields[http::field::connection]), "upgrade"))
        throw RequestRefusal("the request has an upgrade that its connection does not name");
    const bool is_whole =
        is_websocket_key(view_of(fields[http::field::sec_websocket_key])) && view_of(fields[http::field::sec_websocket_version]) == "13";
    if (!is_whole && defence_is_on("route-websocket-key"))
        throw RequestRefusal("a WebSocket begins with version 13, and a key of 16 bytes");
    return true;
}

bool has_body(const http::fields &fields)
{
    return fields.find(http::field::transfer_encoding) != fields.end() || fields.find(http::field::content_length) != fields.end();
}

} // namespace

// --- Reading and allowing the targets of requests at the reverse route.

RouteTarget read_route_target(std::string_view target)
{
    if (target.size() > target_limit) throw RequestRefusal("the request's target is too long", 414);
    if (!target.starts_with('/')) throw RequestRefusal("the request's target must be /HOST/PATH");
    const std::size_t question = std::min(target.find('?'), target.size());
    const std::string_view route = target.substr(0, question);
    const std::string_view query = question == target.size() ? std::string_view() : target.substr(question + 1);
    if (!is_made_of(route, path_bytes)) throw RequestRefusal("the path has a byte that no path has");
    if (!is_made_of(query, query_bytes)) throw RequestRefusal("the query has a byte that no query has");
    const std::size_t slash = std::min(route.find('/', 1), route.size());
    RouteTarget read{std::string(route.substr(1, slash - 1)), std::string(route.substr(slash)), {}};
    if (read.host.empty()) throw RequestRefusal("the path does not begin with a host");
    if (defence_is_on("route-plain-paths")) {
        require_plain_escapes(route);
        require_plain_segments(read.path);
    }
    read.query = without_credentials(query);
    // pi 0.87.1 asks some models of OpenRouter with "/v1/messages" after an address that ends in "/v1".
    constexpr std::string_view twice = "/v1/v1/";
    if (const std::size_t at = read.path.find(twice); at != std::string::npos) read.path.erase(at, twice.size() / 2);
    return read;
}

const GateProvider &choose_provider(const std::vector<GateProvider> &providers, std::string_view method, const RouteTarget &target)
{
    const auto provider = std::find_if(providers.begin(), providers.end(), [&](const auto &one) { return one.host == target.host; });
    if (provider == providers.end())
        throw RequestRefusal(403, DenialReason::no_provider, "no provider of the policy has the host that the path begins with");
    bool is_path = false;
    for (std::size_t index = 0; index < provider->paths.size(); ++index) {
        if (!allows(provider->paths[index], target.path)) continue;
        if (provider->methods.at(index) == method) return *provider;
        is_path = true;
    }
    if (!defence_is_on("route-lists")) return *provider;
    if (!is_path) throw RequestRefusal(403, DenialReason::other_path, "the policy's key for this provider is not for this path");
    throw RequestRefusal(403, DenialReason::other_method, "the policy's key for this provider is not for this method at this path");
}

// The lists of fields that the reverse route passes on, and does not.

bool is_credential(std::string_view name, std::string_view value)
{
    constexpr std::string_view names =
        "authorization proxy-authorization cookie cookie2 x-api-key x-goog-api-key api-key apikey x-auth-token x-access-token "
        "x-amz-security-token x-amz-date ocp-apim-subscription-key x-http-method x-http-method-override x-method-override x-original-url "
        "x-rewrite-url forwarded via x-real-ip";
    if (!defence_is_on("route-credentials")) return false;
    const std::string seen = as_servers_may_see(name);
    // A WebSocket's client that can set no field puts its key among the protocols.
    if (seen == "sec-websocket-protocol" && as_servers_may_see(value).find("api-key") != std::string::npos) return true;
    return has_word(names, seen) || seen.starts_with("x-forwarded-") || seen.starts_with("x-goog-iam-");
}

// Reading heads strictly, and writing them anew.

SecretText::~SecretText()
{
    explicit_bzero(text_.data(), text_.size());
}

void SecretText::append(std::string_view more)
{
    if (text_.capacity() - text_.size() < more.size()) throw std::length_error("a text with a key would have to move");
    text_.append(more);
}

RouteRequest read_request_head(std::string_view head, RequestParser &parser)
{
    put_route_head(head, parser);
    const auto &message = parser.get();
    const std::string method(view_of(message.method_string()));
    if (message.version() != 11) throw RequestRefusal("the request is not of HTTP/1.1", 505);
    // The word for a GET that becomes a WebSocket is no method: it would have a body, and none of what is required of the GET.
    if (method == "TRACE" || method == "CONNECT" || method == websocket_method)
        throw RequestRefusal(405, DenialReason::other_method, "the route passes no " + method);
    if (message.find(http::field::host) == message.end()) throw RequestRefusal("the request has no host");
    const auto expected = message.find(http::field::expect);
    if (expected != message.end() && !is_same(view_of(expected->value()), "100-continue"))
        throw RequestRefusal("the request expects something that the route does not know", 417);
    RouteRequest request{method, read_route_target(view_of(message.target())), parser.chunked(), std::nullopt};
    if (asks_for_websocket(message)) {
        if (method != "GET" || has_body(message)) throw RequestRefusal("a WebSocket begins with a GET that has no body");
        request.method = websocket_method;
    }
    if (message.find(http::field::content_length) != message.end()) request.length = parser.content_length().value_or(0);
    request.waits_to_send = expected != message.end() && has_body(message);
    return request;
}

void require_own_caller(const RequestParser &parser, std::uint16_t port)
{
    const auto &message = parser.get();
    const auto is_own = [port](std::string_view host) {
        constexpr std::array<std::string_view, 3> names = {"127.0.0.1", "localhost", "[::1]"};
        return std::any_of(names.begin(), names.end(),
                           [&](std::string_view name) { return is_same(host, std::string(name) + ":" + std::to_string(port)); });
    };
    const auto origin = message.find(http::field::origin);
    const std::string_view page = origin == message.end() ? "" : view_of(origin->value());
    const bool is_own_page = page.starts_with(http_scheme) && is_own(page.substr(http_scheme.size()));
    const std::string_view site = view_of(message["sec-fetch-site"]);
    const bool is_of_page = (origin != message.end() && !is_own_page) || (!site.empty() && site != "same-origin" && site != "none");
    if (is_of_page && defence_is_on("route-pages")) throw RequestRefusal(403, DenialReason::other_page, "a page of another site asks");
    if (!is_own(view_of(message[http::field::host])) && defence_is_on("route-own-host"))
        throw RequestRefusal(403, DenialReason::other_page, "the request is for another host than the route's own address");
}

SecretText write_request_head(const RouteRequest &request, const RequestParser &parser, const GateProvider &provider)
{
    const auto &message = parser.get();
    const std::string_view named = view_of(message[http::field::connection]);
    SecretText head(route_head_limit + 16'384 + provider.key.size()); // longer than what is read can make it
    const bool is_websocket = request.method == websocket_method;
    for (const std::string_view part : {is_websocket ? std::string_view("GET") : std::string_view(request.method), std::string_view(" "),
                                        std::string_view(request.target.path), std::string_view(request.target.query),
                                        std::string_view(" HTTP/1.1\r\nhost: "), std::string_view(provider.host), head_line_end})
        head.append(part);
    const auto add = [&](std::string_view name, std::string_view first, std::string_view second) {
        for (const auto part : {name, std::string_view(": "), first, second, head_line_end})
            head.append(part);
    };
    for (const auto &field : message) {
        const std::string_view name = view_of(field.name_string());
        const bool is_left_out = is_for_next_station(name, named) || is_same(name, "expect") || is_credential(name, view_of(field.value()));
        if (!is_left_out) add(name, view_of(field.value()), "");
    }
    if (request.has_chunks) add("transfer-encoding", "chunked", "");
    if (request.length) add("content-length", std::to_string(*request.length), "");
    add("connection", is_websocket ? "upgrade" : "close", "");
    if (is_websocket) add("upgrade", "websocket", "");
    add(provider.header, provider.prefix, provider.key);
    head.append(head_line_end);
    return head;
}

std::optional<AnswerBody> read_answer_head(std::string_view head, AnswerParser &parser, bool asked_for_websocket)
{
    put_route_head(head, parser);
    const auto &message = parser.get();
    const unsigned status = message.result_int();
    if (message.version() != 11 && message.version() != 10) throw RequestRefusal("the answer is not of HTTP/1.1");
    if (status == 101) {
        if (!asked_for_websocket || !is_same(view_of(message[http::field::upgrade]), "websocket"))
            throw RequestRefusal("the provider changed to a protocol that nobody asked for");
        return AnswerBody::tunnel;
    }
    if (status < 200) return std::nullopt;
    // Without 101 the request was a plain GET with the key, whose answer is not for the session.
    if (asked_for_websocket && defence_is_on("route-websocket-answer"))
        throw RequestRefusal(status >= 400 && message.result() != http::status::unknown ? status : 502, {},
                             "the provider opened no WebSocket; it answered with the status " + std::to_string(status));
    if (status == 204 || status == 304) return AnswerBody::none;
    return message.find(http::field::content_length) != message.end() ? AnswerBody::counted : AnswerBody::chunks;
}

std::string write_answer_head(const AnswerParser &parser, AnswerBody body)
{
    const auto &message = parser.get();
    const std::string_view named = view_of(message[http::field::connection]);
    std::string head = "HTTP/1.1 " + std::to_string(message.result_int()) + " " + std::string(view_of(message.reason())) + "\r\n";
    const auto add = [&](std::string_view name, std::string_view value) {
        head.append(name).append(": ").append(value).append(head_line_end);
    };
    for (const auto &field : message) {
        const std::string_view name = view_of(field.name_string());
        if (!is_for_next_station(name, named) && !is_of_no_use_inside(name)) add(name, view_of(field.value()));
    }
    if (body == AnswerBody::counted) add("content-length", view_of(message[http::field::content_length]));
    if (body == AnswerBody::chunks) add("transfer-encoding", "chunked");
    add("connection", body == AnswerBody::tunnel ? "upgrade" : "close");
    if (body == AnswerBody::tunnel) add("upgrade", "websocket");
    return head.append(head_line_end);
}

std::string write_refusal(const RequestRefusal &refusal)
{
    const nlohmann::json error = {{"type", refusal.reason ? "pi_agent_denied" : "pi_agent_gate"},
                                  {"code", refusal.reason ? text_of(*refusal.reason).word : ""},
                                  {"message", std::string("pi-agent: ") + refusal.what()}};
    const nlohmann::json body = {{"type", "error"}, {"error", error}};
    return write_refusal(refusal.status, refusal.reason, "application/json",
                         body.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

} // namespace pi_agent

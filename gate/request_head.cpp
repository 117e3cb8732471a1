// Reads heads of requests strictly (RFC 9112), and writes them anew.
#include "gate/request_head.hpp"

#include "common/base/text.hpp"

#include <boost/beast/http/status.hpp>

namespace pi_agent {

// Finding heads, and reading their fields.

namespace {

constexpr std::uint16_t http_port = 80;

// The name of a field, or a method (RFC 9110, 5.6.2).
bool is_token(std::string_view text) noexcept
{
    return !text.empty() && is_made_of(text, "!#$%&'*+-.^_`|~");
}

std::string_view without_blanks(std::string_view text) noexcept
{
    const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

} // namespace

HeadRules rules_at_proxy()
{
    return {request_head_limit, 100, {"host", "content-length", "transfer-encoding"}};
}

HeadRules rules_at_route()
{
    return {route_head_limit,
            128,
            {"host", "content-length", "transfer-encoding", "upgrade", "expect", "content-encoding", "sec-websocket-key",
             "sec-websocket-version", "origin", "sec-fetch-site"}};
}

std::size_t find_head(std::string_view bytes, std::size_t limit)
{
    constexpr std::string_view head_end = "\r\n\r\n";
    const std::size_t end = bytes.find(head_end);
    const std::string_view head = bytes.substr(0, end == bytes.npos ? end : end + head_end.size());
    if (head.size() > limit) throw RequestRefusal("the head is too large", 431);
    for (std::size_t at = 0; at < head.size(); ++at) {
        const auto byte = static_cast<unsigned char>(head[at]);
        const bool ends_line =
            byte == '\r' ? at + 1 == head.size() || head[at + 1] == '\n' : byte == '\n' && at > 0 && head[at - 1] == '\r';
        if (!ends_line && ((byte < ' ' && byte != '\t') || byte == 0x7f))
            throw RequestRefusal("the head has a control character, or half a line's end");
    }
    return end == bytes.npos ? 0 : head.size();
}

std::vector<std::pair<std::string_view, std::string_view>> read_fields(std::string_view head, const HeadRules &rules)
{
    if (head.empty() || find_head(head, rules.bytes) != head.size()) throw RequestRefusal("the head is not whole");
    std::vector<std::pair<std::string_view, std::string_view>> fields;
    std::size_t begin = head.find(head_line_end) + head_line_end.size();
    while (begin + head_line_end.size() < head.size()) {
        const std::size_t end = head.find(head_line_end, begin);
        const std::string_view line = head.substr(begin, end - begin);
        const std::size_t colon = std::min(line.find(':'), line.size());
        if (line.front() == ' ' || line.front() == '\t') throw RequestRefusal("a field of the head is folded over two lines");
        if (colon == line.size() || !is_token(line.substr(0, colon))) throw RequestRefusal("a line of the head is no field");
        fields.emplace_back(line.substr(0, colon), without_blanks(line.substr(colon + 1)));
        begin = end + head_line_end.size();
    }
    if (fields.size() > rules.fields) throw RequestRefusal("the head has too many fields", 431);
    for (const std::string_view name : rules.single)
        if (std::count_if(fields.begin(), fields.end(), [&](const auto &field) { return is_same(field.first, name); }) > 1)
            throw RequestRefusal("the head has a field twice that says how the message is to be read");
    return fields;
}

std::uint64_t read_length(std::string_view value)
{
    const auto length = to_number<std::uint64_t>(value);
    if (!length || value.size() > 15) throw RequestRefusal("the content-length is no plain number");
    return *length;
}

bool is_same(std::string_view one, std::string_view other) noexcept
{
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char left, char right) {
        const auto lower = [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; };
        return lower(left) == lower(right);
    });
}

bool has_listed_word(std::string_view list, std::string_view word) noexcept
{
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        if (is_same(without_blanks(list.substr(begin, end - begin)), word)) return true;
        begin = end + 1;
    }
    return false;
}

bool is_for_next_station(std::string_view name, std::string_view named) noexcept
{
    // RFC 9110, 7.6.1; host, length and coding are written anew.
    constexpr std::string_view names[] = {"connection",
                                          "keep-alive",
                                          "proxy-connection",
                                          "proxy-authorization",
                                          "proxy-authenticate",
                                          "te",
                                          "trailer",
                                          "transfer-encoding",
                                          "upgrade",
                                          "http2-settings",
                                          "host",
                                          "content-length"};
    return std::any_of(std::begin(names), std::end(names), [&](std::string_view one) { return is_same(name, one); }) ||
           has_listed_word(named, name);
}

std::string write_refusal(unsigned status, std::optional<DenialReason> reason, const std::string &type, const std::string &text)
{
    const auto phrase = boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
    return "HTTP/1.1 " + std::to_string(status) + " " + std::string(phrase.data(), phrase.size()) + "\r\n" +
           (reason ? "x-pi-agent-denied: " + std::string(text_of(*reason).word) + "\r\n" : "") + "content-type: " + type +
           "\r\ncontent-length: " + std::to_string(text.size()) + "\r\ncache-control: no-store\r\nconnection: close\r\n\r\n" + text;
}

// Requests at the proxy, and plain HTTP.

namespace {

const std::string *find_field(const RequestHead &head, std::string_view name)
{
    const auto found =
        std::find_if(head.fields.begin(), head.fields.end(), [&](const RequestHead::Field &field) { return is_same(field.name, name); });
    return found == head.fields.end() ? nullptr : &found->value;
}

void read_first_line(std::string_view line, RequestHead &head)
{
    const std::size_t first = line.find(' ');
    const std::size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
    if (second == line.npos) throw RequestRefusal("the first line is not one of HTTP");
    const std::string_view version = line.substr(second + 1);
    head.method = line.substr(0, first);
    head.target = line.substr(first + 1, second - first - 1);
    const bool is_printable = std::all_of(head.target.begin(), head.target.end(), [](char one) { return one > ' ' && one <= '~'; });
    if (!is_token(head.method) || head.target.empty() || !is_printable || (version != "HTTP/1.1" && version != "HTTP/1.0"))
        throw RequestRefusal("the first line is not one of HTTP");
    head.minor = version.back() == '1' ? 1 : 0;
}

std::uint64_t body_length(const RequestHead &head)
{
    if (find_field(head, "transfer-encoding") != nullptr) throw RequestRefusal("the request says no length of its body");
    const std::string *length = find_field(head, "content-length");
    return length == nullptr ? 0 : read_length(*length);
}

} // namespace

RequestHead read_request_head(std::string_view bytes)
{
    RequestHead head;
    const auto fields = read_fields(bytes, rules_at_proxy());
    read_first_line(bytes.substr(0, bytes.find(head_line_end)), head);
    for (const auto &[name, value] : fields)
        head.fields.push_back({std::string(name), std::string(value)});
    return head;
}

std::optional<Target> connect_target(const RequestHead &head)
{
    // A port is always said (RFC 9110, 9.3.6).
    return head.method == "CONNECT" ? read_target(head.target, 0) : std::nullopt;
}

PlainRequest read_plain_request(const RequestHead &head, bool at_proxy, std::uint16_t usual_port)
{
    PlainRequest request;
    if (head.method == "CONNECT" || head.method == "TRACE") throw RequestRefusal("the method is not one for this");
    std::string_view rest = head.target;
    const std::string *host_field = find_field(head, "host");
    const bool is_whole = at_proxy && rest.find("://") != rest.npos;
    if (at_proxy && !is_whole) throw RequestRefusal("a proxy needs a whole address");
    std::optional<Target> target;
    if (is_whole) {
        request.is_encrypted = is_same(rest.substr(0, 8), "https://");
        if (!request.is_encrypted && !is_same(rest.substr(0, 7), "http://")) throw RequestRefusal("the address is not one of HTTP");
        rest.remove_prefix(request.is_encrypted ? 8 : 7);
        const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
        target = read_target(rest.substr(0, end), request.is_encrypted ? 443 : http_port);
        rest.remove_prefix(end);
        usual_port = http_port;
    }
    const auto named = host_field == nullptr ? std::nullopt : read_target(*host_field, usual_port);
    if ((host_field != nullptr && !named) || (is_whole && !target)) throw RequestRefusal("the host cannot be read");
    if (!is_whole) target = named;
    if (!target) throw RequestRefusal("the request has no host");
    if (named && !request.is_encrypted && (named->host.text != target->host.text || named->port != target->port))
        throw RequestRefusal("the request names two hosts");
    request.target = *target;
    request.path = rest.starts_with('/') || rest == "*" ? std::string(rest) : "/" + std::string(rest);
    if (!is_whole && !head.target.starts_with('/') && head.target != "*") throw RequestRefusal("the target is not a path");
    if (request.path.find('#') != std::string::npos) throw RequestRefusal("the target has a fragment");
    request.body = body_length(head);
    return request;
}

std::string write_plain_request(const RequestHead &head, const PlainRequest &request)
{
    const std::string *connection = find_field(head, "connection");
    std::string host = request.target.host.address && request.target.host.address->is_v6() ? "[" + request.target.host.text + "]"
                                                                                           : request.target.host.text;
    if (request.target.port != http_port) host += ":" + std::to_string(request.target.port);
    // As it came: who speaks HTTP/1.0 knows no chunks, and would take the ones of an answer for its text.
    std::string text = head.method + " " + request.path + " HTTP/1." + std::to_string(head.minor) + "\r\nHost: " + host + "\r\n";
    for (const auto &field : head.fields) {
        if (!is_for_next_station(field.name, connection == nullptr ? "" : *connection))
            text.append(field.name).append(": ").append(field.value).append(head_line_end);
    }
    if (find_field(head, "content-length") != nullptr) text += "Content-Length: " + std::to_string(request.body) + "\r\n";
    return text + "Connection: close\r\n\r\n";
}

} // namespace pi_agent

// Reads hosts and heads of requests strictly (RFC 9112), and writes them anew.
#include "gate/request_head.hpp"

#include "common/policy/host_rule.hpp"

namespace pi_agent {

// Reading hosts strictly, into one form.

namespace {

constexpr bool is_digit(char one) noexcept
{
    return one >= '0' && one <= '9';
}

} // namespace

Host to_host(const Address &address)
{
    namespace ip = boost::asio::ip;
    if (!address.is_v6()) return {address.to_string(), address};
    const ip::address_v6 six = address.to_v6();
    // Without its zone, which a socket of the session has for a link-local address: no rule names one, and no message takes its "%".
    const Address one = six.is_v4_mapped() ? Address(ip::make_address_v4(ip::v4_mapped, six)) : Address(ip::address_v6(six.to_bytes()));
    return {one.to_string(), one};
}

std::optional<Host> read_host(std::string_view text)
{
    const bool has_brackets = text.starts_with('[') && text.ends_with(']') && text.find(':') != text.npos;
    const auto host = read_one_host(has_brackets ? text.substr(1, text.size() - 2) : text);
    if (!host) return std::nullopt;
    boost::system::error_code no_address;
    const Address address = boost::asio::ip::make_address(*host, no_address);
    return Host{*host, no_address ? std::nullopt : std::optional(address)};
}

std::optional<Target> read_target(std::string_view text, std::uint16_t usual_port)
{
    const std::size_t colon = text.rfind(':');
    const bool has_port = colon != text.npos && text.find(']', colon) == text.npos;
    if (has_port && text.front() != '[' && text.find(':') != colon) return std::nullopt; // an address of IPv6 without brackets
    const auto host = read_host(has_port ? text.substr(0, colon) : text);
    const auto digits = has_port ? text.substr(colon + 1) : std::string_view();
    const auto port = has_port ? to_number<std::uint16_t>(digits) : std::optional(usual_port);
    if (!host || !port || *port == 0 || (has_port && (digits.size() > 5 || !is_digit(digits.front())))) return std::nullopt;
    return Target{*host, *port};
}

bool is_loopback(const Host &host) noexcept
{
    return host.address ? host.address->is_loopback() : host.text == "localhost" || host.text.ends_with(".localhost");
}

// Measuring heads, and comparing their words.

HeadSize measure_head(std::string_view bytes, std::size_t limit) noexcept
{
    constexpr std::string_view head_end = "\r\n\r\n";
    const std::size_t end = bytes.find(head_end);
    const std::string_view head = bytes.substr(0, end == bytes.npos ? end : end + head_end.size());
    if (head.size() > limit) return {0, HeadProblem::too_large};
    for (std::size_t at = 0; at < head.size(); ++at) {
        const auto byte = static_cast<unsigned char>(head[at]);
        const bool ends_line =
            byte == '\r' ? at + 1 == head.size() || head[at + 1] == '\n' : byte == '\n' && at > 0 && head[at - 1] == '\r';
        if (!ends_line && ((byte < ' ' && byte != '\t') || byte == 0x7f)) return {0, HeadProblem::control_character};
    }
    return {end == bytes.npos ? 0 : head.size(), HeadProblem::none};
}

bool is_token(std::string_view text) noexcept
{
    constexpr std::string_view token_bytes = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return !text.empty() && text.find_first_not_of(token_bytes) == text.npos;
}

bool is_same(std::string_view one, std::string_view other) noexcept
{
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char left, char right) {
        const auto lower = [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; };
        return lower(left) == lower(right);
    });
}

std::string_view without_blanks(std::string_view text) noexcept
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
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

// Reading heads of requests strictly (RFC 9112), and writing them anew.

namespace {

constexpr std::size_t request_field_limit = 100;
constexpr std::uint16_t http_port = 80;

// For the next station alone, or for a proxy.
constexpr std::array dropped_fields = {"connection",
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
// Two of them would be understood differently by two readers.
constexpr std::array single_fields = {"host", "content-length", "transfer-encoding"};

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
    if (second == line.npos) throw MalformedHead("the first line is not one of HTTP");
    const std::string_view version = line.substr(second + 1);
    head.method = line.substr(0, first);
    head.target = line.substr(first + 1, second - first - 1);
    const bool is_printable = std::all_of(head.target.begin(), head.target.end(), [](char one) { return one > ' ' && one <= '~'; });
    if (!is_token(head.method) || head.target.empty() || !is_printable || (version != "HTTP/1.1" && version != "HTTP/1.0"))
        throw MalformedHead("the first line is not one of HTTP");
    head.minor = version.back() == '1' ? 1 : 0;
}

std::uint64_t body_length(const RequestHead &head)
{
    if (find_field(head, "transfer-encoding") != nullptr) throw MalformedHead("the request says no length of its body");
    const std::string *length = find_field(head, "content-length");
    if (length == nullptr) return 0;
    if (length->empty() || length->size() > 15 || length->find_first_not_of("0123456789") != length->npos)
        throw MalformedHead("the content-length is not a plain number");
    return to_number<std::uint64_t>(*length).value_or(0);
}

} // namespace

std::size_t find_request_head(std::string_view bytes)
{
    const HeadSize head = measure_head(bytes, request_head_limit);
    if (head.problem == HeadProblem::too_large) throw MalformedHead("the head is too large");
    if (head.problem == HeadProblem::control_character) throw MalformedHead("the head has a control character");
    return head.size;
}

RequestHead read_request_head(std::string_view bytes)
{
    if (find_request_head(bytes) != bytes.size()) throw MalformedHead("the head is not whole");
    RequestHead head;
    std::size_t begin = bytes.find(head_line_end) + head_line_end.size();
    read_first_line(bytes.substr(0, begin - head_line_end.size()), head);
    while (begin + head_line_end.size() < bytes.size()) {
        const std::size_t end = bytes.find(head_line_end, begin);
        const std::string_view line = bytes.substr(begin, end - begin);
        const std::size_t colon = line.find(':');
        if (colon == line.npos || !is_token(line.substr(0, colon))) throw MalformedHead("a line of the head is not a field");
        head.fields.push_back({std::string(line.substr(0, colon)), std::string(without_blanks(line.substr(colon + 1)))});
        begin = end + head_line_end.size();
    }
    if (head.fields.size() > request_field_limit) throw MalformedHead("the head has too many fields");
    for (const std::string_view name : single_fields)
        if (std::count_if(head.fields.begin(), head.fields.end(), [&](const auto &field) { return is_same(field.name, name); }) > 1)
            throw MalformedHead("the head has a field twice");
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
    if (head.method == "CONNECT" || head.method == "TRACE") throw MalformedHead("the method is not one for this");
    std::string_view rest = head.target;
    const std::string *host_field = find_field(head, "host");
    const bool is_whole = at_proxy && rest.find("://") != rest.npos;
    if (at_proxy && !is_whole) throw MalformedHead("a proxy needs a whole address");
    std::optional<Target> target;
    if (is_whole) {
        request.is_encrypted = is_same(rest.substr(0, 8), "https://");
        if (!request.is_encrypted && !is_same(rest.substr(0, 7), "http://")) throw MalformedHead("the address is not one of HTTP");
        rest.remove_prefix(request.is_encrypted ? 8 : 7);
        const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
        target = read_target(rest.substr(0, end), request.is_encrypted ? 443 : http_port);
        rest.remove_prefix(end);
        usual_port = http_port;
    }
    const auto named = host_field == nullptr ? std::nullopt : read_target(*host_field, usual_port);
    if ((host_field != nullptr && !named) || (is_whole && !target)) throw MalformedHead("the host cannot be read");
    if (!is_whole) target = named;
    if (!target) throw MalformedHead("the request has no host");
    if (named && !request.is_encrypted && (named->host.text != target->host.text || named->port != target->port))
        throw MalformedHead("the request names two hosts");
    request.target = *target;
    request.path = rest.starts_with('/') || rest == "*" ? std::string(rest) : "/" + std::string(rest);
    if (!is_whole && !head.target.starts_with('/') && head.target != "*") throw MalformedHead("the target is not a path");
    if (request.path.find('#') != std::string::npos) throw MalformedHead("the target has a fragment");
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
        const bool is_dropped =
            std::any_of(dropped_fields.begin(), dropped_fields.end(), [&](const char *name) { return is_same(field.name, name); });
        if (!is_dropped && !(connection != nullptr && has_listed_word(*connection, field.name)))
            text.append(field.name).append(": ").append(field.value).append(head_line_end);
    }
    if (find_field(head, "content-length") != nullptr) text += "Content-Length: " + std::to_string(request.body) + "\r\n";
    return text + "Connection: close\r\n\r\n";
}

} // namespace pi_agent

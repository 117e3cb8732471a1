// Heads of HTTP and the first bytes of a connection, read strictly, and refused in their language.
#include "gate/rules.hpp"

#include "common/seams/seams.hpp"

namespace pi_agent {

namespace http = boost::beast::http;

namespace {

constexpr std::uint16_t http_port = 80;

// The name of a field, or a method (RFC 9110, 5.6.2).
bool is_token(std::string_view text) noexcept
{
    return !text.empty() && is_made_of(text, "!#$%&'*+-.^_`|~");
}

constexpr std::size_t record_head = 5;
constexpr std::size_t record_most = 16'384;
constexpr unsigned first_record = 20, handshake = 22, last_record = 24; // kinds: change_cipher_spec to heartbeat
constexpr unsigned client_hello = 1;
constexpr unsigned server_name = 0;
constexpr unsigned encrypted_client_hello = 0xfe0d;
constexpr unsigned encrypted_server_name = 0xffce; // a draft
constexpr unsigned outer_extensions = 0xfd00;      // only ever inside of an encrypted one

// One name, and nothing else: a list of several has no use, and readers that take the first or the last would disagree.
std::string read_server_name(std::string_view extension)
{
    ByteReader outer(extension);
    ByteReader list(outer.counted(2));
    const unsigned kind = list.number(1);
    const std::string_view name = list.counted(2);
    if (!outer.is_at_end() || !list.is_at_end() || kind != 0 || name.empty()) throw Malformed();
    return std::string(name);
}

void read_extensions(std::string_view bytes, ClientHello &hello)
{
    std::set<unsigned> seen;
    for (ByteReader rest(bytes); !rest.is_at_end();) {
        const unsigned kind = rest.number(2);
        const std::string_view extension = rest.counted(2);
        if (!seen.insert(kind).second || kind == outer_extensions) throw Malformed();
        if (kind == server_name) hello.name = read_server_name(extension);
        if (kind == encrypted_client_hello || kind == encrypted_server_name) hello.has_encrypted_name = true;
    }
}

void read_body(std::string_view body, ClientHello &hello)
{
    ByteReader rest(body);
    if (rest.number(1) != 3) throw Malformed(); // the first byte of each version there is
    rest.take(1 + 32);
    if (rest.counted(1).size() > 32) throw Malformed();
    const std::string_view suites = rest.counted(2);
    if (suites.size() < 2 || suites.size() % 2 != 0 || rest.counted(1).empty()) throw Malformed();
    if (rest.is_at_end()) return; // TLS before there were extensions
    read_extensions(rest.counted(2), hello);
    if (!rest.is_at_end()) throw Malformed();
}

// What is known to be wanting, in the bytes of the connection.
ClientHello incomplete(std::size_t needed)
{
    return {needed > hello_limit ? HelloState::malformed : HelloState::incomplete, needed};
}

bool is_other_record(char kind) noexcept
{
    const auto number = static_cast<unsigned char>(kind);
    return number >= first_record && number <= last_record && number != handshake;
}

FirstBytes refused(DenialReason reason)
{
    return {FirstBytes::State::refused, reason};
}

FirstBytes passing(std::optional<Host> said, std::string forward, std::uint64_t further = without_end)
{
    return {FirstBytes::State::passes, {}, std::move(said), std::move(forward), further};
}

FirstBytes judge_tls(Speech speech, const std::optional<Host> &named, std::string_view bytes)
{
    const ClientHello hello = read_client_hello(bytes);
    switch (hello.state) {
    case HelloState::incomplete:
        return {};
    case HelloState::malformed:
        return refused(DenialReason::malformed);
    case HelloState::not_tls:
        return speech == Speech::any ? passing({}, std::string(bytes)) : refused(DenialReason::not_tls);
    case HelloState::whole:
        break;
    }
    // With it the server may answer for a name that only the server can read: any of those behind the same addresses.
    if (hello.has_encrypted_name && defence_is_on("gate-encrypted-names")) return refused(DenialReason::encrypted_name);
    if (!hello.name) return speech == Speech::any ? passing({}, std::string(bytes)) : refused(DenialReason::no_name);
    const auto said = read_host(*hello.name);
    if (!said || said->address) return refused(DenialReason::malformed);
    if (named && said->text != named->text && defence_is_on("gate-names")) return refused(DenialReason::other_name);
    return passing(said, std::string(bytes));
}

FirstBytes judge_http(const std::optional<Host> &named, std::uint16_t port, std::string_view bytes)
{
    // Nothing else begins with such letters for so long.
    const std::size_t letters = std::min(bytes.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), bytes.size());
    if ((letters < bytes.size() && (letters == 0 || bytes[letters] != ' ')) || letters > 32) return refused(DenialReason::not_http);
    try {
        const std::size_t size = find_head(bytes, request_head_limit);
        if (size == 0) return {};
        const RequestHead head = read_request_head(bytes.substr(0, size));
        const PlainRequest request = read_plain_request(head, false, port);
        const bool is_other = (named && request.target.host.text != named->text) || request.target.port != port;
        if (is_other && defence_is_on("gate-host-field")) return refused(DenialReason::other_name);
        const std::size_t body = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size() - size, request.body));
        FirstBytes first =
            passing(request.target.host, write_plain_request(head, request) + std::string(bytes.substr(size, body)), request.body - body);
        first.is_upgrade = request.is_upgrade;
        return first;
    } catch (const RequestRefusal &) {
        return refused(DenialReason::malformed);
    }
}

} // namespace

// Finding heads, and reading their fields.

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
        fields.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
        begin = end + head_line_end.size();
    }
    if (fields.size() > rules.fields) throw RequestRefusal("the head has too many fields", 431);
    for (const std::string_view name : split(rules.single, ','))
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
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](char left, char right) { return lower_case(left) == lower_case(right); });
}

bool has_listed_word(std::string_view list, std::string_view word)
{
    const auto words = split(list, ',');
    return std::any_of(words.begin(), words.end(), [&](std::string_view one) { return is_same(trimmed(one), word); });
}

bool is_for_next_station(std::string_view name, std::string_view named)
{
    // RFC 9110, 7.6.1; host, length and coding are written anew.
    constexpr std::string_view names = "connection,keep-alive,proxy-connection,proxy-authorization,proxy-authenticate,te,trailer,"
                                       "transfer-encoding,upgrade,http2-settings,host,content-length";
    return has_listed_word(names, name) || has_listed_word(named, name);
}

std::string write_refusal(unsigned status, std::optional<DenialReason> reason, const std::string &type, const std::string &text)
{
    const auto phrase = http::obsolete_reason(http::int_to_status(status));
    return "HTTP/1.1 " + std::to_string(status) + " " + std::string(phrase.data(), phrase.size()) + "\r\n" +
           (reason ? "x-pi-agent-denied: " + std::string(text_of(*reason).word) + "\r\n" : "") + "content-type: " + type +
           "\r\ncontent-length: " + std::to_string(text.size()) + "\r\ncache-control: no-store\r\nconnection: close\r\n\r\n" + text;
}

// Requests at the proxy, and plain HTTP.

RequestHead read_request_head(std::string_view bytes)
{
    RequestParser parser;
    put_head(bytes, parser, rules_at_proxy);
    const RequestHead &head = parser.get();
    const std::string_view target = view_of(head.target());
    const bool is_printable = std::all_of(target.begin(), target.end(), [](char one) { return one > ' ' && one <= '~'; });
    if (!is_printable || (head.version() != 11 && head.version() != 10)) throw RequestRefusal("the first line is not one of HTTP");
    return head;
}

std::optional<Target> connect_target(const RequestHead &head)
{
    // A port is always said (RFC 9110, 9.3.6).
    return head.method() == http::verb::connect ? read_target(view_of(head.target()), 0) : std::nullopt;
}

PlainRequest read_plain_request(const RequestHead &head, bool at_proxy, std::uint16_t usual_port)
{
    PlainRequest request;
    if (head.method() == http::verb::connect || head.method() == http::verb::trace) throw RequestRefusal("the method is not one for this");
    const std::string_view written = view_of(head.target());
    std::string_view rest = written;
    const auto host_field = head.find(http::field::host);
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
    const bool has_host = host_field != head.end();
    const auto named = has_host ? read_target(view_of(host_field->value()), usual_port) : std::nullopt;
    if ((has_host && !named) || (is_whole && !target)) throw RequestRefusal("the host cannot be read");
    if (!is_whole) target = named;
    if (!target) throw RequestRefusal("the request has no host");
    if (named && !request.is_encrypted && (named->host.text != target->host.text || named->port != target->port))
        throw RequestRefusal("the request names two hosts");
    request.target = *target;
    request.path = rest.starts_with('/') || rest == "*" ? std::string(rest) : "/" + std::string(rest);
    if (!is_whole && !written.starts_with('/') && written != "*") throw RequestRefusal("the target is not a path");
    if (request.path.find('#') != std::string::npos) throw RequestRefusal("the target has a fragment");
    if (head.find(http::field::transfer_encoding) != head.end()) throw RequestRefusal("the request says no length of its body");
    if (const auto length = head.find(http::field::content_length); length != head.end())
        request.body = read_length(view_of(length->value()));
    request.is_upgrade = head.method() == http::verb::get && head.version() == 11 && request.body == 0 &&
                         has_listed_word(view_of(head[http::field::connection]), "upgrade") &&
                         is_same(view_of(head[http::field::upgrade]), "websocket") && !head[http::field::sec_websocket_key].empty() &&
                         head[http::field::sec_websocket_version] == "13";
    return request;
}

std::string write_plain_request(const RequestHead &head, const PlainRequest &request)
{
    std::string host = request.target.host.address && request.target.host.address->is_v6() ? "[" + request.target.host.text + "]"
                                                                                           : request.target.host.text;
    if (request.target.port != http_port) host += ":" + std::to_string(request.target.port);
    // As it came: who speaks HTTP/1.0 knows no chunks, and would take the ones of an answer for its text.
    std::string text(view_of(head.method_string()));
    text += " " + request.path + (head.version() == 10 ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ") + host + "\r\n";
    for (const auto &field : head)
        if (!is_for_next_station(view_of(field.name_string()), view_of(head[http::field::connection])))
            text.append(view_of(field.name_string())).append(": ").append(view_of(field.value())).append(head_line_end);
    if (head.find(http::field::content_length) != head.end()) text += "Content-Length: " + std::to_string(request.body) + "\r\n";
    return text + (request.is_upgrade ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" : "Connection: close\r\n\r\n");
}

// Reading a ClientHello strictly (RFC 8446, RFC 6066): each length is exact, and nothing is there twice.

ClientHello read_client_hello(std::string_view bytes)
{
    std::string message; // what the records have in them
    std::size_t whole = 4;
    for (std::size_t at = 0; message.size() < whole;) {
        const std::string_view head = bytes.substr(at, record_head);
        // Servers skip some records before a ClientHello, or answer them, and would then take a name that nobody has compared.
        if (at == 0 && !head.empty() && is_other_record(head[0])) {
            if (head.size() == 1) return incomplete(2);
            if (head[1] == 3 && defence_is_on("gate-records")) return {HelloState::malformed};
        }
        if (!head.empty() && static_cast<unsigned char>(head[0]) != handshake)
            return {at == 0 ? HelloState::not_tls : HelloState::malformed};
        if (head.size() > 1 && head[1] != 3) return {at == 0 ? HelloState::not_tls : HelloState::malformed};
        if (head.size() < record_head) return incomplete(at + record_head);
        const std::size_t length =
            static_cast<std::size_t>(static_cast<unsigned char>(head[3])) << 8U | static_cast<unsigned char>(head[4]);
        if (length == 0 || length > record_most) return {HelloState::malformed};
        if (bytes.size() - at - record_head < length) return incomplete(at + record_head + length);
        message.append(bytes.substr(at + record_head, length));
        at += record_head + length;
        if (message.size() < 4) continue;
        if (static_cast<unsigned char>(message[0]) != client_hello) return {HelloState::malformed};
        ByteReader size(std::string_view(message).substr(1, 3));
        whole = 4 + size.number(3);
        if (whole > hello_limit) return {HelloState::malformed};
    }
    // Nothing follows a ClientHello in its record: it is the end of a flight.
    if (message.size() != whole) return {HelloState::malformed};
    ClientHello hello{HelloState::whole};
    try {
        read_body(std::string_view(message).substr(4), hello);
    } catch (const Malformed &) {
        return {HelloState::malformed};
    }
    return hello;
}

std::string write_alert(Alert alert)
{
    constexpr char fatal = 2;
    return {21, 3, 3, 0, 2, fatal, static_cast<char>(alert)};
}

// Judging the first bytes of a connection, and refusing in its language.

Speech speech_of_port(std::uint16_t port) noexcept
{
    return port == 443 ? Speech::tls : port == 80 ? Speech::http : Speech::any;
}

FirstBytes judge_first_bytes(Speech speech, const std::optional<Host> &named, std::uint16_t port, std::string_view bytes)
{
    if (bytes.empty()) return {};
    return speech == Speech::http ? judge_http(named, port, bytes) : judge_tls(speech, named, bytes);
}

std::string refusal_in(Speech speech, std::optional<DenialReason> reason, const std::string &text)
{
    if (speech == Speech::any) return {};
    if (speech == Speech::tls) {
        if (!reason) return write_alert(Alert::internal_error);
        if (reason == DenialReason::other_name || reason == DenialReason::no_name) return write_alert(Alert::unrecognized_name);
        return write_alert(reason == DenialReason::malformed ? Alert::decode_error : Alert::access_denied);
    }
    const unsigned status = !reason                                                                    ? 504
                            : reason == DenialReason::malformed                                        ? 400
                            : reason == DenialReason::too_slow                                         ? 408
                            : reason == DenialReason::too_many || reason == DenialReason::no_room      ? 503
                            : reason == DenialReason::no_address || reason >= DenialReason::proxy_gone ? 502
                                                                                                       : 403;
    return write_refusal(status, reason, "text/plain; charset=utf-8", "pi-agent: " + text + "\n");
}

} // namespace pi_agent

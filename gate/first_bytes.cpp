// Judges the first bytes of a connection, and refuses in its language.
#include "gate/first_bytes.hpp"

#include "common/seams/seams.hpp"

#include <algorithm>
#include <set>

namespace pi_agent {

// Reading a ClientHello strictly (RFC 8446, RFC 6066): each length is exact, and nothing is there twice.

namespace {

constexpr std::size_t record_head = 5;
constexpr std::size_t record_most = 16'384;
constexpr unsigned first_record = 20, handshake = 22, last_record = 24; // kinds: change_cipher_spec to heartbeat
constexpr unsigned client_hello = 1;
constexpr unsigned server_name = 0;
constexpr unsigned encrypted_client_hello = 0xfe0d;
constexpr unsigned encrypted_server_name = 0xffce; // a draft
constexpr unsigned outer_extensions = 0xfd00;      // only ever inside of an encrypted one

struct Malformed : std::exception {};

class Reader {
public:
    explicit Reader(std::string_view bytes) noexcept : rest_(bytes) {}
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
    [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

private:
    std::string_view rest_;
};

// One name, and nothing else: a list of several has no use, and readers that take the first or the last would disagree.
std::string read_server_name(std::string_view extension)
{
    Reader outer(extension);
    Reader list(outer.counted(2));
    const unsigned kind = list.number(1);
    const std::string_view name = list.counted(2);
    if (!outer.is_at_end() || !list.is_at_end() || kind != 0 || name.empty()) throw Malformed();
    return std::string(name);
}

void read_extensions(std::string_view bytes, ClientHello &hello)
{
    std::set<unsigned> seen;
    for (Reader rest(bytes); !rest.is_at_end();) {
        const unsigned kind = rest.number(2);
        const std::string_view extension = rest.counted(2);
        if (!seen.insert(kind).second || kind == outer_extensions) throw Malformed();
        if (kind == server_name) hello.name = read_server_name(extension);
        if (kind == encrypted_client_hello || kind == encrypted_server_name) hello.has_encrypted_name = true;
    }
}

void read_body(std::string_view body, ClientHello &hello)
{
    Reader rest(body);
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

} // namespace

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
        Reader size(std::string_view(message).substr(1, 3));
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

namespace {

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
        return passing(request.target.host, write_plain_request(head, request) + std::string(bytes.substr(size, body)),
                       request.body - body);
    } catch (const RequestRefusal &) {
        return refused(DenialReason::malformed);
    }
}

} // namespace

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
    const unsigned status = !reason                                                               ? 504
                            : reason == DenialReason::malformed                                   ? 400
                            : reason == DenialReason::too_slow                                    ? 408
                            : reason == DenialReason::too_many || reason == DenialReason::no_room ? 503
                            : reason == DenialReason::no_address                                  ? 502
                                                                                                  : 403;
    return write_refusal(status, reason, "text/plain; charset=utf-8", "pi-agent: " + text + "\n");
}

} // namespace pi_agent

// Judging the first bytes of a connection, and refusing in its language.
#include "gate/first_bytes.hpp"

#include "common/seams/seams.hpp"
#include "gate/request_head.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

FirstBytes refused(DenialReason reason)
{
    FirstBytes first;
    first.state = FirstBytes::State::refused;
    first.reason = reason;
    return first;
}

FirstBytes passing(std::optional<Host> said, std::string forward)
{
    FirstBytes first;
    first.state = FirstBytes::State::passes;
    first.said = std::move(said);
    first.forward = std::move(forward);
    return first;
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
        const std::size_t size = find_request_head(bytes);
        if (size == 0) return {};
        const RequestHead head = read_request_head(bytes.substr(0, size));
        const PlainRequest request = read_plain_request(head, false, port);
        const bool is_other = (named && request.target.host.text != named->text) || request.target.port != port;
        if (is_other && defence_is_on("gate-host-field")) return refused(DenialReason::other_name);
        const std::size_t body = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size() - size, request.body));
        FirstBytes first = passing(request.target.host, write_plain_request(head, request) + std::string(bytes.substr(size, body)));
        first.further = request.body - body;
        return first;
    } catch (const MalformedHead &) {
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
    if (speech == Speech::http) return write_http_refusal(reason, text);
    if (speech == Speech::any) return {};
    if (!reason) return write_alert(Alert::internal_error);
    if (reason == DenialReason::other_name || reason == DenialReason::no_name) return write_alert(Alert::unrecognized_name);
    return write_alert(reason == DenialReason::malformed ? Alert::decode_error : Alert::access_denied);
}

std::string write_http_refusal(std::optional<DenialReason> reason, const std::string &text)
{
    const std::string body = "pi-agent: " + text + "\n";
    const char *status = !reason                                                               ? "504 Gateway Timeout"
                         : reason == DenialReason::malformed                                   ? "400 Bad Request"
                         : reason == DenialReason::too_slow                                    ? "408 Request Timeout"
                         : reason == DenialReason::too_many || reason == DenialReason::no_room ? "503 Service Unavailable"
                         : reason == DenialReason::no_address                                  ? "502 Bad Gateway"
                                                                                               : "403 Forbidden";
    return std::string("HTTP/1.1 ") + status +
           "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           (reason ? "x-pi-agent-denied: " + std::string(text_of(*reason).word) + "\r\n" : "") +
           "Cache-Control: no-store\r\nConnection: close\r\n\r\n" + body;
}

} // namespace pi_agent

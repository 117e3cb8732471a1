// The first bytes of a connection at the gate, of TLS: what is read as a ClientHello has one name at most, however it is cut into records
// and pieces, and is passed on as it came.
#include "gate/rules.hpp"
#include "support/property.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

// The same message in records of one length.
std::string in_records(std::string_view message, std::size_t size)
{
    std::string bytes;
    for (std::size_t at = 0; at < message.size(); at += size) {
        const std::string_view piece = message.substr(at, size);
        bytes += {22, 3, 1, static_cast<char>(piece.size() >> 8U), static_cast<char>(piece.size() & 0xffU)};
        bytes += piece;
    }
    return bytes;
}

void try_pieces(std::string_view bytes, const ClientHello &whole)
{
    for (std::size_t length = 0; length < std::min<std::size_t>(bytes.size(), 600); ++length) {
        const ClientHello part = read_client_hello(bytes.substr(0, length));
        if (part.state == HelloState::incomplete) {
            require(part.needed > length, "nothing more is needed, and yet it is incomplete");
            continue;
        }
        require(part.state == whole.state && part.name == whole.name, "what is said of the beginning is not what is said of the whole");
        return;
    }
}

void try_message(std::string_view message)
{
    const ClientHello one = read_client_hello(in_records(message, 16'384));
    const ClientHello other = read_client_hello(in_records(message, 7));
    if (one.state == HelloState::whole)
        require(other.state == one.state && other.name == one.name && other.has_encrypted_name == one.has_encrypted_name,
                "a ClientHello means something else in other records");
}

void try_judgement(Speech speech, std::uint16_t port, std::string_view bytes)
{
    const Host named{"a.example", {}};
    const FirstBytes first = judge_first_bytes(speech, named, port, bytes);
    if (first.state != FirstBytes::State::passes) return;
    require(!first.said || first.said->text == named.text, "another name passes");
    require(speech != Speech::tls || first.said.has_value(), "TLS passes without a name");
    require(speech == Speech::http || first.forward == bytes, "TLS is passed on as something else");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const ClientHello whole = read_client_hello(input);
    require(whole.state != HelloState::incomplete || whole.needed > input.size(), "nothing more is needed, and yet it is incomplete");
    try_pieces(input, whole);
    try_message(input);
    if (!input.empty())
        try_message("\x01" + std::string{0, static_cast<char>(input.size() >> 8U), static_cast<char>(input.size())} + std::string(input));
    try_judgement(Speech::tls, 443, input);
    try_judgement(Speech::any, 8443, input);
    require_linear(input, [](std::string_view text) { read_client_hello(text); });
}

// The first message of TLS, of which the gate reads the name that it asks for. Nothing is changed and nothing decrypted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

constexpr std::size_t hello_limit = 32UL * 1024; // bytes in which a ClientHello must be whole, in however many records

enum class HelloState {
    incomplete,
    whole,
    not_tls,   // the bytes begin something else
    malformed, // also what two readers could understand differently
};

struct ClientHello {
    HelloState state = HelloState::incomplete;
    std::size_t needed = 0;               // incomplete: nothing more can be said before there are this many bytes
    std::optional<std::string> name = {}; // as it is written (server_name, RFC 6066)
    bool has_encrypted_name = false;      // encrypted_client_hello, or the drafts before it
};

// From the first bytes of a connection, and from all of them again as more come.
ClientHello read_client_hello(std::string_view bytes);

// A fatal alert, before any key is there: what a program then says of the connection.
enum class Alert : unsigned char { access_denied = 49, decode_error = 50, internal_error = 80, unrecognized_name = 112 };
std::string write_alert(Alert alert);

} // namespace pi_agent

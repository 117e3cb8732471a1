// What the first bytes of a connection say, compared with the host that it was opened to.
#pragma once

#include "gate/request_head.hpp"

#include <limits>

namespace pi_agent {

// The first message of TLS, of which the gate reads the name that it asks for. Nothing is changed and nothing decrypted.

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

// What the first bytes of a connection say, compared with the host that it was opened to.

// What has to be said at a port before anything passes.
enum class Speech {
    tls,  // 443: a ClientHello with the name
    http, // 80: one request with the name, written anew; the next one needs a connection of its own
    any,  // other ports: anything; where it is a ClientHello with a name, the right one
};
Speech speech_of_port(std::uint16_t port) noexcept;

constexpr std::uint64_t without_end = std::numeric_limits<std::uint64_t>::max();

struct FirstBytes {
    enum class State { incomplete, passes, refused };
    State state = State::incomplete;
    DenialReason reason{};               // refused
    std::optional<Host> said = {};       // passes: the name in them
    std::string forward = {};            // passes: what the server gets for all the bytes
    std::uint64_t further = without_end; // passes: how many bytes after these it may get
    std::string farewell = {};           // refused by a relay's judge: what the session is told
};

// `named`: the host that the connection was opened to, where that is known; without it, the bytes have to say one. All bytes so far.
FirstBytes judge_first_bytes(Speech speech, const std::optional<Host> &named, std::uint16_t port, std::string_view bytes);

// What the session is told in the language of its connection; empty where nobody could read it. Without a reason, nothing was denied.
std::string refusal_in(Speech speech, std::optional<DenialReason> reason, const std::string &text);

} // namespace pi_agent

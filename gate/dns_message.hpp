// Questions to the gate's name server, and its answers (RFC 1035). Nothing is ever forwarded: what is not here, nobody is asked.
#pragma once

#include "gate/name_table.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace pi_agent {

constexpr std::size_t dns_message_limit = 1232; // bytes of a question over UDP or TCP; larger ones are dropped

// The answer to a question; empty for what is none, or malformed. Each well-formed name has an address (A; AAAA where the session has
// IPv6), "localhost" its own, and nothing has anything else: so no HTTPS record turns a client to another name or an encrypted one.
std::string answer_dns(std::string_view question, NameTable &names, bool has_v6);

} // namespace pi_agent

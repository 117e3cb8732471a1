// What keeps this session from a host or a path, in words: for the agent, which can then tell its user.
#pragma once

#include "runner/wire/gate_messages.hpp"

namespace pi_agent {

struct WhyAnswer {
    bool is_free = false; // nothing keeps it from that
    std::string text;     // lines, in which what others chose is escaped
};

// Reads what is here, and asks nobody. `root` is "/", below which the session's lists are.
WhyAnswer why(const std::string &asked, const std::string &root);

// What encode() wrote of them. Strict: throws Failure(internal) for anything else.
SessionHosts decode_session_hosts(std::string_view text);

} // namespace pi_agent

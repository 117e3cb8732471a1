// How a session and its units are called.
#pragma once

#include <optional>
#include <string>

namespace pi_agent {

// An id is 128 random bits in hex: part of unit names and paths, so its alphabet is fixed.
bool is_session_id(const std::string &text) noexcept;
std::string scope_name(const std::string &id);                        // pi-agent-run-ID.scope
std::optional<std::string> session_of_scope(const std::string &unit); // its ID, when it is such a name
std::string service_name(const std::string &id);                      // pi-agent-ID.service
std::string cleanup_name(const std::string &id);                      // pi-agent-cleanup-ID.service

} // namespace pi_agent

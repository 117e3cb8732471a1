// Which fields of a head the reverse route passes on, and which not.
#pragma once

#include <string_view>

namespace pi_agent {

// Whether a line of a head is the field `name`.
bool is_field(std::string_view line, std::string_view name) noexcept;

// For the next station alone: how the connection is used, or how the body's length is said. `named`: the message's field "connection".
bool is_for_next_station(std::string_view name, std::string_view named) noexcept;

// In a request: what could be somebody's key, or makes another request of it.
bool is_credential(std::string_view name, std::string_view value);

// In an answer: what would have no effect, or leads around the route.
bool is_of_no_use_inside(std::string_view name) noexcept;

} // namespace pi_agent

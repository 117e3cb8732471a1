// How deep JSON text nests, before anything parses it.
#pragma once

#include <string_view>

namespace pi_agent {

// Whether more than `levels` objects and lists lie in each other. Exact for valid JSON; what is not valid is the parser's to refuse. The
// parser's own callback takes the square of the number of objects in one list for the same answer: minutes for a MiB of "{},".
bool nests_deeper(std::string_view json, int levels) noexcept;

} // namespace pi_agent

// A line of a policy file with a caret under a column, as compilers show it.
#pragma once

#include "common/base/error.hpp"

#include <string>
#include <string_view>

namespace pi_agent {

// The line of `text` that `where` names, and below it a caret under its column: two lines, each ended by a line feed. A long line is cut
// around the caret, tabs become spaces, and what could deceive a reader is escaped. "" where the text has no such line.
std::string excerpt(std::string_view text, const Position &where);

} // namespace pi_agent

// Says something on standard error, where a reader that does not read, and a terminal that is paused, hold nothing up.
#pragma once

#include <string_view>

namespace pi_agent {

// Waits a second at most, and not again until something was taken. best_effort: what is not taken by then is lost.
void say(std::string_view text) noexcept;

} // namespace pi_agent
